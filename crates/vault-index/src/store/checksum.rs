//! Checksums of the data that searches read, so that bytes which changed on disk are reported as damage.
//!
//! SQLite has no checksums of its own. The data that a search ranks by and shows has them: blocks of codes and of
//! passages, vectors and texts. They are computed when a row is written and compared when it is read; [`Store::faults`]
//! compares all of them. The keyword index and all other rows have none, because a check compares them with the vault.

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

#[cfg(doc)]
use crate::store::Store;

/// The number of words that are summed at once, so that the compiler uses vector instructions.
const LANES: usize = 8;

/// Fletcher's checksum of 64-bit words in eight lanes, folded into one number: about as fast as reading memory. It
/// detects faults of disks and memory, but not deliberate changes.
pub(super) fn checksum(bytes: &[u8]) -> i64 {
    let (mut sums, mut sums_of_sums) = ([0_u64; LANES], [0_u64; LANES]);
    let mut add = |words: &[[u8; 8]; LANES]| {
        for lane in 0..LANES {
            sums[lane] = sums[lane].wrapping_add(u64::from_le_bytes(words[lane]));
            sums_of_sums[lane] = sums_of_sums[lane].wrapping_add(sums[lane]);
        }
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let (chunks, words) = words.as_chunks::<LANES>();
    chunks.iter().for_each(&mut add);
    let mut last = [[0; 8]; LANES];
    last[..words.len()].copy_from_slice(words);
    if let Some(word) = last.get_mut(words.len()) {
        word[..rest.len()].copy_from_slice(rest);
    }
    add(&last);
    // The sum of zeros differs from that of an empty text, and one lane cannot compensate for another.
    let fold = |sum: u64, lane: u64| (sum ^ lane).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    sums.into_iter().chain(sums_of_sums).fold(!(bytes.len() as u64), fold) as i64
}

/// Registers `checksum(X)` in SQL for a blob or a text X; for NULL it is NULL.
pub(super) fn register(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    conn.create_scalar_function("checksum", 1, flags, |context| {
        let bytes = context.get_raw(0).as_bytes_or_null()?;
        Ok(bytes.map(checksum))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_burst_of_changed_bytes_is_noticed(
            bytes in prop::collection::vec(any::<u8>(), 1..400),
            burst in prop::collection::vec(1_u8.., 1..40),
            at in any::<prop::sample::Index>(),
        ) {
            let mut changed = bytes.clone();
            changed.iter_mut().skip(at.index(bytes.len())).zip(&burst).for_each(|(byte, flip)| *byte ^= flip);
            prop_assert_ne!(checksum(&bytes), checksum(&changed));
            let zeros = vec![0; bytes.len()];
            prop_assert!(bytes == zeros || checksum(&bytes) != checksum(&zeros));
            prop_assert_ne!(checksum(&bytes), checksum(&bytes[1..]));
        }
    }

    #[test]
    fn words_that_change_places_are_noticed() {
        let words: Vec<u8> = (0..256_u64).flat_map(u64::to_le_bytes).collect();
        for (a, b) in [(0, 1), (0, 8), (7, 200), (3, 11)] {
            let mut swapped = words.clone();
            (0..8).for_each(|byte| swapped.swap(8 * a + byte, 8 * b + byte));
            assert_ne!(checksum(&words), checksum(&swapped), "{a} and {b}");
        }
        assert_eq!([checksum(&[]), checksum(&[0])].iter().filter(|sum| **sum == 0).count(), 0);
    }
}
