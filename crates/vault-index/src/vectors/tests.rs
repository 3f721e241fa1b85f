//! Properties of the bounds: they hold for all vectors, and are the same for every kernel.

use proptest::prelude::*;

use super::kernel::{LINE, Line};
use super::quantize::MAX_DIMENSIONS;
use super::*;

/// Blocks with the rows in them, as written by the store.
fn blocks_of(dimensions: usize, rows: &[Option<Vec<f32>>]) -> Vec<Vec<u8>> {
    let mut blocks = vec![vec![0; block_len(dimensions)]; rows.len().div_ceil(BLOCK_ROWS)];
    for (slot, row) in rows.iter().enumerate() {
        if let Some(row) = row {
            put(&mut blocks, slot, &QuantizedRow::new(row).unwrap());
        }
    }
    blocks
}

fn put(blocks: &mut [Vec<u8>], slot: usize, row: &QuantizedRow) {
    let (block, at) = block_and_row(slot);
    for (offset, bytes) in row_bytes(at, row) {
        blocks[block][offset..][..bytes.len()].copy_from_slice(&bytes);
    }
}

fn codes_of(dimensions: usize, rows: &[Option<Vec<f32>>]) -> Codes {
    let mut codes = Codes::new(dimensions);
    for (number, block) in blocks_of(dimensions, rows).iter().enumerate() {
        codes.load_block(number, block).unwrap();
    }
    codes
}

/// The bounds hold for every row, and are the same for all kernels and for any requested rows (`some`).
fn check(rows: &[Option<Vec<f32>>], q: &[f32], some: impl IntoIterator<Item = usize>) {
    let codes = codes_of(q.len(), rows);
    let query = &QueryCodes::new(q).unwrap();
    let slots: Vec<u32> = (0..codes.len() as u32).collect();
    let some: Vec<u32> = some.into_iter().filter(|slot| *slot < codes.len()).map(|slot| slot as u32).collect();
    let uppers = codes.upper_bounds(query, &slots, slots.len());
    let intervals = codes.intervals(query, &slots);
    for (slot, row) in rows.iter().enumerate() {
        let Some(row) = row else {
            assert_eq!(uppers.get(slot).copied().unwrap_or(f32::NEG_INFINITY), f32::NEG_INFINITY);
            assert_eq!(intervals.get(slot).copied().unwrap_or(Interval::NONE), Interval::NONE);
            continue;
        };
        let (exact, interval) = (rescore(q, row), intervals[slot]);
        assert!(exact <= uppers[slot], "{exact} of {slot} above {}", uppers[slot]);
        assert!(interval.lower <= exact && exact <= interval.upper, "{exact} of {slot} outside of {interval:?}");
    }
    for kernel in Kernel::all() {
        let mut codes = codes.clone();
        codes.kernel = kernel;
        assert_eq!(codes.intervals(query, &slots), intervals, "{}", kernel.name());
        assert_eq!(codes.upper_bounds(query, &slots, slots.len()), uppers, "{}", kernel.name());
        for count in [some.len() / 2, some.len()] {
            let of_some: Vec<f32> = some[..count].iter().map(|slot| uppers[*slot as usize]).collect();
            assert_eq!(codes.upper_bounds(query, &some, count), of_some, "{}, {count}", kernel.name());
        }
    }
}

fn unit(mut v: Vec<f32>) -> Vec<f32> {
    let norm = v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        v.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    }
    v
}

/// Difficult components: zeros of both signs, spikes, subnormals, halves of a step, and ordinary ones.
fn component() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -1.0_f32..1.0,
        2 => Just(0.0), 1 => Just(-0.0), 1 => Just(1.0), 1 => Just(-1.0),
        1 => Just(1e-38), 1 => Just(1e-42), 1 => Just(0.5 / 127.0), 1 => Just(1e-6),
    ]
}

fn vector(dimensions: usize) -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        9 => prop::collection::vec(component(), dimensions).prop_map(unit),
        1 => Just(vec![0.0; dimensions]),
        // Shorter than unit length, down to underflow.
        1 => prop::collection::vec((-1.0_f32..1.0).prop_map(|x| x * 1e-33), dimensions),
    ]
}

/// Rows of which many are equal, or equal except for the last bits.
fn rows(dimensions: usize) -> impl Strategy<Value = Vec<Option<Vec<f32>>>> {
    let few = prop::collection::vec(vector(dimensions), 1..6);
    let picks = prop::collection::vec((any::<prop::sample::Index>(), 0..dimensions, -2_i32..3, 0..8_u8), 0..200);
    (few, picks).prop_map(|(few, picks)| {
        let row = |(which, at, ulps, empty): (prop::sample::Index, usize, i32, u8)| {
            let mut row = which.get(&few).clone();
            for _ in 0..ulps.abs() {
                row[at] = if ulps > 0 { row[at].next_up() } else { row[at].next_down() };
            }
            (empty > 0).then_some(row)
        };
        picks.into_iter().map(row).collect()
    })
}

proptest! {
    #[test]
    fn bounds_hold(
        (rows, q) in prop_oneof![Just(1_usize), Just(7), Just(16), Just(64), Just(100)]
            .prop_flat_map(|d| (rows(d), vector(d))),
        members in prop::collection::vec(0_usize..220, 0..200),
    ) {
        check(&rows, &q, members);
    }

    #[test]
    fn bounds_hold_for_near_neighbours_of_the_query(
        q in prop::collection::vec(-1.0_f32..1.0, 384).prop_map(unit),
        noise in prop::collection::vec((0_usize..384, -1e-3_f32..1e-3), 1..300),
    ) {
        let near = |&(at, by): &(usize, f32)| { let mut row = q.clone(); row[at] += by; Some(unit(row)) };
        let rows: Vec<_> = noise.iter().map(near).collect();
        check(&rows, &q, (0..300).step_by(3));
    }

    #[test]
    fn every_kernel_is_the_naive_sum(
        lines in 1_usize..5, rows in 0_usize..10, extreme in 0..4_u8, seed in any::<u32>(),
        which in prop::collection::vec(any::<prop::sample::Index>(), 0..70), prefetched in 0_usize..70,
    ) {
        let width = lines * LINE;
        let mut random = random(seed);
        let query: Vec<i8> = (0..2 * width)
            .map(|_| match extreme { 0 => 127, 1 => -127, 2 => 0, _ => (random() % 255) as i8 })
            .collect();
        let mut line = || Line([(); LINE].map(|()| if extreme == 3 { random() as u8 } else { 255 }));
        let matrix: Vec<Line> = (0..rows * lines).map(|_| line()).collect();
        let naive = |row: u32| -> i32 {
            let row: Vec<u8> = matrix[row as usize * lines..][..lines].iter().flat_map(|line| line.0).collect();
            let low: i32 = (0..width).map(|j| query[j] as i32 * (row[j] & 15) as i32).sum();
            low + (0..width).map(|j| query[width + j] as i32 * (row[j] >> 4) as i32).sum::<i32>()
        };
        let which: Vec<u32> = which.iter().filter(|_| rows > 0).map(|at| at.index(rows) as u32).collect();
        for kernel in Kernel::all() {
            let mut out = vec![7; which.len().saturating_sub(prefetched)];
            kernel.dots(&query, &matrix, &which, &mut out);
            let expected: Vec<i32> = which[..out.len()].iter().map(|&row| naive(row)).collect();
            prop_assert_eq!(&out, &expected, "{}", kernel.name());
        }
    }

    #[test]
    fn the_bound_holds(v in prop_oneof![Just(3_usize), Just(384)].prop_flat_map(vector)) {
        let quantized = QuantizedRow::new(&v).unwrap();
        let off = |code: fn(i8) -> f64| v.iter().zip(&quantized.codes)
            .map(|(&x, &c)| (f64::from(x) - f64::from(quantized.scale) * code(c)).powi(2))
            .sum::<f64>().sqrt();
        prop_assert!(off(f64::from) <= f64::from(quantized.error));
        prop_assert!(off(|code| 16.0 * f64::from(code >> 4) + 7.5) <= f64::from(quantized.coarse_error));
        prop_assert!(quantized.scale > 0.0 && !quantized.codes.contains(&-128));
    }

    #[test]
    fn blocks_are_loaded_in_any_order_and_again(
        rows in prop::collection::vec((0_usize..3 * BLOCK_ROWS, vector(5), any::<bool>()), 0..40),
        order in Just([0_usize, 1, 2]).prop_shuffle(),
    ) {
        let mut slots = vec![None; 3 * BLOCK_ROWS];
        let mut codes = codes_of(5, &slots);
        for (slot, row, keep) in rows {
            slots[slot] = keep.then_some(row);
        }
        let blocks = blocks_of(5, &slots);
        order.iter().for_each(|&number| codes.load_block(number, &blocks[number]).unwrap());
        let stored: Vec<Block> = blocks.into_iter().map(|bytes| Block::from_bytes(5, bytes).unwrap()).collect();
        for (slot, row) in slots.iter().enumerate() {
            let (number, at) = block_and_row(slot);
            prop_assert_eq!(stored[number].row(at), row.as_ref().map(|row| QuantizedRow::new(row).unwrap()));
            prop_assert_eq!(codes.contains(slot), row.is_some());
        }
        let expected = codes_of(5, &slots);
        prop_assert_eq!((&codes.high, &codes.low), (&expected.high, &expected.low));
        prop_assert_eq!(
            (&codes.scales, &codes.coarse_errors, &codes.errors),
            (&expected.scales, &expected.coarse_errors, &expected.errors)
        );
        prop_assert_eq!(codes.len(), slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    }

    #[test]
    fn top_k_is_the_beginning_of_the_sorted_list(
        pushed in prop::collection::vec((-3_i8..4, 0_u16..50), 0..60), k in 0_usize..70,
    ) {
        // Zeros of both signs are equal.
        let score = |s: i8, key: u16| match s {
            3 => f32::NAN,
            0 if key.is_multiple_of(2) => -0.0,
            s => f32::from(s),
        };
        let mut top = TopK::new(k);
        for &(s, key) in &pushed {
            top.push(score(s, key), key);
        }
        let mut all: Vec<(u16, f32)> =
            pushed.iter().filter(|(s, _)| *s < 3).map(|&(s, key)| (key, f32::from(s))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut keys = std::collections::HashSet::new();
        all.retain(|(key, _)| keys.insert(*key));
        all.truncate(k);
        prop_assert_eq!(top.threshold(), all.get(k.wrapping_sub(1)).map(|(_, score)| *score));
        prop_assert_eq!(top.into_sorted(), all);
    }
}

/// Pseudo-random numbers.
fn random(mut seed: u32) -> impl FnMut() -> u32 {
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    }
}

fn random_rows(count: usize, dimensions: usize) -> Vec<Option<Vec<f32>>> {
    let mut random = random(1);
    let mut component = || random() as f32 / (1 << 24) as f32 - 0.5;
    (0..count).map(|_| Some(unit((0..dimensions).map(|_| component()).collect()))).collect()
}

#[test]
fn few_rows_reach_the_best_score() {
    let rows = random_rows(5000, 384);
    let q = rows[77].clone().unwrap();
    let (codes, query) = (codes_of(384, &rows), QueryCodes::new(&q).unwrap());
    let score = rescore(&q, &q);
    let reaching = |uppers: Vec<f32>| uppers.iter().filter(|upper| **upper >= score).count();
    let slots: Vec<u32> = (0..5000).collect();
    assert_eq!(reaching(codes.upper_bounds(&query, &slots, slots.len())), 1);
    assert_eq!(reaching(codes.intervals(&query, &slots).iter().map(|interval| interval.upper).collect()), 1);
}

#[test]
fn bounds_of_many_rows_with_gaps() {
    let mut rows = random_rows(20_000, 24);
    (0..rows.len()).step_by(7).for_each(|slot| rows[slot] = None);
    rows.iter_mut().step_by(11).flatten().for_each(|row| row[3] = row[3].next_down());
    let q = rows[8].clone().unwrap();
    let mut random = random(5);
    for share in [0, 1, 10, 45, 90, 100] {
        let some: Vec<usize> = (0..rows.len()).filter(|_| random() % 100 < share).collect();
        check(&rows, &q, some);
    }
}

#[test]
fn scores_closer_than_codes_can_tell() {
    // A spike that all rows share takes the whole range of the codes; the differences between rows are below one step.
    let rows: Vec<_> = (0..3000)
        .map(|i| {
            let mut row = vec![0.0; 384];
            (row[0], row[1 + i % 383]) = (1.0, (i * 7919 % 3001) as f32 * 1e-6);
            Some(unit(row))
        })
        .collect();
    let q = unit((0..384).map(|i| 1.0 + (i % 5) as f32).collect());
    check(&rows, &q, (0..3000).step_by(2));
}

#[test]
#[should_panic(expected = "row 3 is out of range")]
fn a_kernel_reads_no_row_out_of_range() {
    Kernel::best().dots(&[1; 2 * LINE], &[Line([0; LINE]); 3], &[0, 3, 1], &mut [0; 3]);
}

#[test]
fn the_widest_vectors_do_not_overflow() {
    // Codes all 127, and sums long enough for the rounding of f32 to outgrow the error of the codes.
    let row = unit(vec![1.0; MAX_DIMENSIONS - 36]);
    check(&[Some(row.clone()), Some(row.iter().map(|x| -x).collect())], &row, []);
}

#[test]
fn what_cannot_be_quantized_is_refused() {
    let kind = |v: &[f32]| QuantizedRow::new(v).map_err(|e| e.kind());
    for bad in [&[f32::NAN, 0.0][..], &[f32::INFINITY, 0.0], &[f32::NEG_INFINITY], &[1.0, 0.1], &[f32::MAX; 3], &[]] {
        assert_eq!(kind(bad), Err(crate::error::ErrorKind::Model), "{bad:?}");
    }
    assert!(QueryCodes::new(&[f32::NAN]).is_err());
    assert!(QueryCodes::new(&[f32::MAX]).is_err());
    assert!(QueryCodes::new(&[3.0, 4.0]).is_ok());
}

#[test]
fn damaged_blocks_are_refused() {
    let load = |bytes: &[u8]| Codes::new(4).load_block(0, bytes).map_err(|e| e.kind());
    let good = vec![0; block_len(4)];
    assert_eq!(load(&good), Ok(()));
    assert_eq!(load(&good[1..]), Err(crate::error::ErrorKind::Damaged));
    for number in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
        let mut bad = good.clone();
        bad[row_offsets(4, 3).scale].copy_from_slice(&number.to_le_bytes());
        assert_eq!(load(&bad), Err(crate::error::ErrorKind::Damaged), "{number}");
    }
    assert!(Codes::new(4).load_block(usize::MAX, &good).is_err());
}

#[test]
fn the_layout_of_a_block_is_as_documented() {
    assert_eq!(block_len(384), 1024 * (4 + 4 + 4 + 192 + 192));
    assert_eq!(block_len(5), 1024 * (4 + 4 + 4 + 64 + 64));
    let at = row_offsets(384, 2);
    assert_eq!((at.scale, at.coarse_error, at.error), (8..12, 4104..4108, 8200..8204));
    assert_eq!((at.high, at.low), (12_672..12_864, 209_280..209_472));
    assert_eq!(row_offsets(384, 1023).low.end, block_len(384));
    let row =
        QuantizedRow { codes: (-63..=64).chain([127, -127]).collect(), scale: 1.0, error: 2.0, coarse_error: 3.0 };
    let [high, low] = row.halves();
    // Two lines: code 128 shares a byte with code 0. -63 = 16 · -4 + 1, 127 = 16 · 7 + 15.
    assert_eq!((high.len(), high[0], low[0]), (128, 0xf4, 0xf1));
    // -62 = 16 · -4 + 2, -127 = 16 · -8 + 1.
    assert_eq!((high[1], low[1]), (0x04, 0x12));
    assert_eq!((high[127], low[127]), (0x0c, 0x00));
    assert_eq!(block_and_row(2050), (2, 2));
}
