//! One query against the codes as they lie in the file, without loading them: by two readers where there are many.

use std::path::Path;

use crate::error::Result;
use crate::store::{BlockState, Store};
use crate::vectors::{BLOCK_ROWS, Estimate, QueryCodes, block_estimates};

/// From so many blocks on, the half of them takes longer than another reader takes to begin. Reading them is mostly
/// the kernel's and SQLite's copying, page by page, which two can do at once.
const BLOCKS_FOR_TWO: usize = 16;

/// The estimated score of every slot. Linear in the codes, of which no more than a block is in memory for each reader.
pub(super) fn estimates(store: &Store, query: &QueryCodes) -> Result<Vec<Estimate>> {
    let blocks = store.block_states()?;
    let mut estimates = Vec::new();
    let alone =
        blocks.len() < BLOCKS_FOR_TWO || std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2);
    if alone {
        add(store, &blocks, 0, query, &mut estimates)?;
        return Ok(estimates);
    }
    let (ours, theirs) = blocks.split_at(blocks.len() / 2);
    let begin = theirs[0].0 as usize;
    let path = store.path();
    std::thread::scope(|scope| {
        let spawn = || of_another_reader(path, theirs, begin, query);
        let other = std::thread::Builder::new().spawn_scoped(scope, spawn).ok();
        add(store, ours, 0, query, &mut estimates)?;
        let rest = other.and_then(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        match rest {
            Some(rest) => {
                estimates.resize(begin * BLOCK_ROWS, Estimate::NONE);
                estimates.extend(rest);
            }
            None => add(store, theirs, 0, query, &mut estimates)?,
        }
        Ok(estimates)
    })
}

/// What a reader of its own finds, from block `begin` on. `None`: it sees another state of the file, or cannot read it;
/// then the first reader reads the rest too, and says what is wrong with it.
fn of_another_reader(path: &Path, blocks: &[BlockState], begin: usize, query: &QueryCodes) -> Option<Vec<Estimate>> {
    let store = Store::open_read(path).ok()?;
    store.pin().ok()?;
    let seen = store.block_states().ok()?;
    // Where the state is the same, the bytes are.
    if !blocks.iter().all(|block| block.1.is_some() && seen.binary_search(block).is_ok()) {
        return None;
    }
    let mut estimates = Vec::new();
    add(&store, blocks, begin, query, &mut estimates).ok()?;
    Some(estimates)
}

/// Adds the estimates of blocks to those of the blocks from `begin` on.
fn add(
    store: &Store,
    blocks: &[BlockState],
    begin: usize,
    query: &QueryCodes,
    estimates: &mut Vec<Estimate>,
) -> Result<()> {
    store.blocks(blocks.iter().map(|(block, _)| *block), |number, bytes| {
        estimates.resize((number - begin) * BLOCK_ROWS, Estimate::NONE);
        block_estimates(query, bytes, estimates)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::key_of;

    const BLOCKS: i64 = BLOCKS_FOR_TWO as i64 + 3;

    fn put(store: &Store, slot: i64) {
        let angle = slot as f32;
        store.put_vector(slot, &key_of(&slot.to_string()), &[angle.sin(), angle.cos(), 0.0, 0.0]).unwrap();
    }

    /// Two rows a block, and a block that is missing.
    fn store(path: &Path) -> Store {
        let store = Store::open(path).unwrap();
        let batch = store.begin().unwrap();
        store.make_vectors("test", 4).unwrap();
        for block in (0..BLOCKS).filter(|block| *block != BLOCKS / 2 + 1) {
            [1, 700].iter().for_each(|row| put(&store, block * BLOCK_ROWS as i64 + row));
        }
        batch.commit().unwrap();
        store
    }

    fn query() -> QueryCodes {
        QueryCodes::new(&[0.6, 0.8, 0.0, 0.0]).unwrap()
    }

    /// What one reader alone finds.
    fn expected(store: &Store) -> Vec<Estimate> {
        let mut estimates = Vec::new();
        add(store, &store.block_states().unwrap(), 0, &query(), &mut estimates).unwrap();
        estimates
    }

    #[test]
    fn two_readers_find_what_one_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        let writer = store(&path);
        let all = expected(&writer);
        assert_eq!(all.iter().filter(|estimate| estimate.is_row()).count() as i64, 2 * (BLOCKS - 1));
        let reader = Store::open_read(&path).unwrap();
        reader.pin().unwrap();
        let blocks = reader.block_states().unwrap();
        let theirs = &blocks[blocks.len() / 2..];
        let begin = theirs[0].0 as usize;
        let other = || of_another_reader(&path, theirs, begin, &query());
        assert_eq!(other().unwrap(), all[begin * BLOCK_ROWS..]);
        assert_eq!(estimates(&reader, &query()).unwrap(), all);
        // A block of theirs that this reader does not see: it reads them all itself.
        let batch = writer.begin().unwrap();
        put(&writer, BLOCKS * BLOCK_ROWS as i64 - 5);
        batch.commit().unwrap();
        assert!(other().is_none());
        assert_eq!(estimates(&reader, &query()).unwrap(), all);
        drop(reader);
        assert_eq!(estimates(&Store::open_read(&path).unwrap(), &query()).unwrap(), expected(&writer));
    }
}
