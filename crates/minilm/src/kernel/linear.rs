//! Quantized rows times an int8 matrix, tile by tile, with the epilogue applied while the sums are in cache.
#![expect(unsafe_code, reason = "tiles read through pointers")]

use super::activations::gelu;
use super::lanes::{LANES, Lanes};
use super::{Epilogue, Line, Linear, PANEL, QuantizedRows};

/// The most rows that a tile may take at once.
pub(super) const MOST_ROWS: usize = 6;

/// The sums of a tile: for each row, one for each column of the panel.
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [[i32; PANEL]; MOST_ROWS]);

/// A few rows times one panel of the matrix.
///
/// # Safety
/// See [`Lanes`]: a tile is used only in the functions of a kernel that checks for its instructions.
pub(super) unsafe trait Tile {
    /// Rows of a full tile, at most [`MOST_ROWS`].
    const ROWS: usize;
    /// Whether the integers of a row are stored around 128, as unsigned bytes. The sums must then start at
    /// [`Linear::starts`] in place of 0.
    const FLIPPED: bool;

    /// `sums[r][c] = start[c] + Σ row[r][k] · panel[k][c]` for `r < R`.
    ///
    /// # Safety
    /// `1 <= R <= ROWS`; `width` is a multiple of 4; `first` points to `R` contiguous rows of `width` bytes, and
    /// `panel` to `width · PANEL` bytes.
    unsafe fn sums<const R: usize>(
        first: *const u8,
        width: usize,
        panel: *const i8,
        start: &[i32; PANEL],
        sums: &mut Sums,
    );
}

/// `out = epilogue(input · matrix + bias)`.
///
/// A panel of 64 columns stays in the L1 cache while it is multiplied with all rows. Rows are divided into tiles of
/// nearly equal size, because a tile of one or two rows costs as much as one of four.
#[inline(always)]
pub(super) fn linear<L: Lanes, T: Tile>(input: &QuantizedRows, layer: &Linear, epilogue: Epilogue, out: &mut [Line]) {
    let rows = input.scales.len();
    let width = layer.width;
    let lines = layer.bias.len();
    let panels = layer.starts.len();
    let bytes = input.bytes.as_ptr().cast::<u8>();
    assert!(width.is_multiple_of(4));
    assert!(rows * width == input.bytes.len() * PANEL && layer.weights.len() == panels * width * PANEL);
    assert!(lines == panels * PANEL / LANES && layer.scales.len() == lines && out.len() == rows * lines);
    let tiles = rows.div_ceil(T::ROWS);
    let mut sums = Sums([[0; PANEL]; MOST_ROWS]);
    // The number of rows is a constant of the compiled tile, so that its sums stay in registers.
    macro_rules! tile {
        ($rows:expr, $($argument:expr),+) => {
            match $rows {
                1 => T::sums::<1>($($argument),+),
                2 => T::sums::<2>($($argument),+),
                3 => T::sums::<3>($($argument),+),
                4 => T::sums::<4>($($argument),+),
                5 if T::ROWS >= 5 => T::sums::<5>($($argument),+),
                _ => T::sums::<MOST_ROWS>($($argument),+),
            }
        };
    }
    for (panel, start) in layer.starts.iter().enumerate() {
        let weights = layer.weights[panel * width * PANEL..].as_ptr();
        let mut from = 0;
        for tile in 1..=tiles {
            let to = rows * tile / tiles;
            // SAFETY: rows `from..to` are within the input, at least one and at most `ROWS` of them, because there are
            // at least as many rows as tiles. The panel is within the matrix, and the assertions above check the width.
            unsafe { tile!(to - from, bytes.add(from * width), width, weights, start, &mut sums) };
            for row in from..to {
                let scale = L::splat(input.scales[row]);
                for i in 0..PANEL / LANES {
                    let column = panel * (PANEL / LANES) + i;
                    let (sums, _) =
                        sums.0[row - from][i * LANES..].split_first_chunk().unwrap_or_else(|| unreachable!());
                    let real = L::of_sums(sums).mul(scale);
                    let real = real.mul_add(L::load(&layer.scales[column].0), L::load(&layer.bias[column].0));
                    let out = &mut out[row * lines + column].0;
                    match epilogue {
                        Epilogue::Store => real,
                        Epilogue::Add => real.add(L::load(out)),
                        Epilogue::Gelu => gelu(real),
                    }
                    .store(out);
                }
            }
            from = to;
        }
    }
}
