//! The vocabulary of a WordPiece model as a hash table from a piece of a word to its id, built in well under a millisecond.

/// The position of a piece in a word. The number is the start value of its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum PiecePosition {
    /// At the start of a word.
    Start = 0x51_7c_c1_b7_27_22_0a_95,
    /// Anywhere after the start: written with `##` in the vocabulary file.
    Inside = 0x9e_37_79_b9_7f_4a_7c_15,
}

/// A hash that is extended byte by byte, so that all prefixes of a word take one pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(u64);

impl Hash {
    #[inline]
    pub(crate) fn new(position: PiecePosition) -> Hash {
        Hash(position as u64)
    }

    #[inline]
    pub(crate) fn add(self, byte: u8) -> Hash {
        Hash((self.0 ^ u64::from(byte)).wrapping_mul(0x2127_599b_f432_5c37))
    }

    /// Uses the high bits, because the low half of a product is not well mixed.
    #[inline]
    fn slot(self) -> usize {
        ((self.0 ^ (self.0 >> 29)) >> (64 - SLOT_BITS - 8)) as usize & (SLOTS - 1)
    }

    #[inline]
    fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

const SLOT_BITS: u32 = 16;
const SLOTS: usize = 1 << SLOT_BITS;
const EMPTY: u16 = u16::MAX;

/// Half of the slots.
pub(crate) const MOST_TOKENS: usize = SLOTS / 2;
/// In bytes.
pub(crate) const LONGEST_TOKEN: usize = u8::MAX as usize;

#[derive(Clone, Copy)]
struct Slot {
    tag: u16,
    id: u16,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u8,
    position: PiecePosition,
}

pub(crate) struct Vocabulary {
    text: Box<str>,
    entries: Vec<Entry>,
    /// Open addressing; half empty, so that unsuccessful searches are short too.
    slots: Box<[Slot]>,
    longest: usize,
}

impl Vocabulary {
    /// Reads one token per line; its id is the line number.
    ///
    /// # Panics
    /// If the table cannot hold the number of tokens or their length ([`MOST_TOKENS`], [`LONGEST_TOKEN`]). Those of the
    /// bundled model are tested; those of others are checked when their file is made.
    pub(crate) fn new(text: &str) -> Vocabulary {
        let mut vocabulary = Vocabulary {
            text: text.into(),
            entries: Vec::with_capacity(SLOTS / 2),
            slots: vec![Slot { tag: 0, id: EMPTY }; SLOTS].into_boxed_slice(),
            longest: 0,
        };
        let mut line_start = 0;
        for line in text.split_terminator('\n') {
            let (position, piece) = match line.strip_prefix("##") {
                Some(piece) if !piece.is_empty() => (PiecePosition::Inside, piece),
                _ => (PiecePosition::Start, line),
            };
            let start = line_start + line.len() - piece.len();
            vocabulary.insert(start, piece, position);
            line_start += line.len() + 1;
        }
        vocabulary
    }

    fn insert(&mut self, start: usize, piece: &str, position: PiecePosition) {
        let id = self.entries.len() as u16;
        assert!(self.entries.len() < MOST_TOKENS && piece.len() <= LONGEST_TOKEN);
        self.entries.push(Entry { start: start as u32, len: piece.len() as u8, position });
        self.longest = self.longest.max(piece.len());
        let hash = piece.bytes().fold(Hash::new(position), Hash::add);
        let mut slot = hash.slot();
        while self.slots[slot].id != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = Slot { tag: hash.tag(), id };
    }

    /// The id of `piece`, whose hash (started with `position`) the caller has computed.
    #[inline]
    pub(crate) fn find(&self, piece: &[u8], position: PiecePosition, hash: Hash) -> Option<u32> {
        let (mut at, tag) = (hash.slot(), hash.tag());
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY {
                return None;
            }
            if slot.tag == tag {
                let entry = self.entries[usize::from(slot.id)];
                let start = entry.start as usize;
                if entry.position == position
                    && usize::from(entry.len) == piece.len()
                    && &self.text.as_bytes()[start..start + piece.len()] == piece
                {
                    return Some(u32::from(slot.id));
                }
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// [`find`](Self::find) for a token at the start of a word.
    pub(crate) fn find_start(&self, token: &str) -> Option<u32> {
        let hash = token.bytes().fold(Hash::new(PiecePosition::Start), Hash::add);
        self.find(token.as_bytes(), PiecePosition::Start, hash)
    }

    /// The length of the longest piece in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_under_its_number() {
        let text = minilm_weights_3::VOCABULARY;
        let vocabulary = Vocabulary::new(text);
        for (id, line) in text.lines().enumerate() {
            let (position, piece) = match line.strip_prefix("##") {
                Some(piece) if !piece.is_empty() => (PiecePosition::Inside, piece),
                _ => (PiecePosition::Start, line),
            };
            let hash = piece.bytes().fold(Hash::new(position), Hash::add);
            assert_eq!(vocabulary.find(piece.as_bytes(), position, hash), Some(id as u32), "{line}");
        }
        assert_eq!(vocabulary.find_start("nosuchtoken"), None);
    }
}
