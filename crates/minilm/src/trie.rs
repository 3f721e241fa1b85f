//! A set of byte strings as a double array: all prefixes of a text that are in the set, in one pass, read in place.
//!
//! A slot is `[base, check]`. From node `n`, byte `b` leads to slot `base(n) + b`, if the check of that slot is `n + 1`.
//! No key has a zero byte, so the slot `base(n) + 0` marks the end of a key, and its base is the key's number.
//! (Aoe, *An efficient digital search algorithm by using a double-array structure*, 1989.)

/// The slots, which may be those of a damaged file: whatever they hold, a search ends and reads nothing outside.
#[derive(Clone, Copy)]
pub(crate) struct Trie<'a>(pub(crate) &'a [[u32; 2]]);

impl Trie<'_> {
    /// Calls `found` with the length and the number of each key that `text` starts with, the shortest first.
    #[inline]
    pub(crate) fn each_prefix(self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut node = 0;
        for (at, byte) in text.iter().enumerate() {
            let Some(next) = self.step(node, *byte) else { return };
            node = next;
            if let Some(end) = self.step(node, 0) {
                found(at + 1, self.0[end][0]);
            }
        }
    }

    #[inline]
    fn step(self, node: usize, byte: u8) -> Option<usize> {
        let next = self.0.get(node)?[0] as usize + usize::from(byte);
        (self.0.get(next)?[1] == node as u32 + 1).then_some(next)
    }
}

/// Builds the slots for keys with their numbers, which are sorted by key and distinct; no key is empty or has a zero
/// byte.
pub(crate) fn build(keys: &[(&[u8], u32)]) -> Vec<[u32; 2]> {
    let mut builder = Builder { slots: vec![[0, 0]; 257], first_free: 1 };
    // The root is nobody's child, but not free.
    builder.slots[0][1] = u32::MAX;
    let mut open = vec![(0, 0, keys)];
    let mut children: Vec<(u8, usize)> = Vec::new();
    while let Some((node, depth, keys)) = open.pop() {
        children.clear();
        for (i, (key, _)) in keys.iter().enumerate() {
            let byte = key.get(depth).copied().unwrap_or(0);
            if children.last().is_none_or(|(last, _)| *last != byte) {
                children.push((byte, i));
            }
        }
        let base = builder.place(node, &children);
        for (i, (byte, from)) in children.iter().enumerate() {
            let to = children.get(i + 1).map_or(keys.len(), |(_, from)| *from);
            let child = base + usize::from(*byte);
            match byte {
                0 => builder.slots[child][0] = keys[*from].1,
                _ => open.push((child, depth + 1, &keys[*from..to])),
            }
        }
    }
    builder.slots
}

struct Builder {
    slots: Vec<[u32; 2]>,
    /// No slot before it is free, or too few are to be worth a search.
    first_free: usize,
}

impl Builder {
    /// Finds a base at which all children have a free slot, and takes the slots.
    fn place(&mut self, node: usize, children: &[(u8, usize)]) -> usize {
        let Some(&(first, _)) = children.first() else { return 0 };
        let is_free = |slots: &[[u32; 2]], at: usize| slots.get(at).is_none_or(|slot| slot[1] == 0);
        let (mut at, mut taken) = (self.first_free.max(usize::from(first) + 1), 0);
        let begin = at;
        let base = loop {
            if is_free(&self.slots, at) {
                let base = at - usize::from(first);
                if children.iter().all(|(byte, _)| is_free(&self.slots, base + usize::from(*byte))) {
                    break base;
                }
            } else {
                taken += 1;
            }
            at += 1;
        };
        // Where nearly all is taken, later searches begin behind it.
        if taken * 20 >= (at - begin + 1) * 19 {
            self.first_free = self.first_free.max(at);
        }
        let last = base + usize::from(u8::MAX) + 1;
        if self.slots.len() < last {
            self.slots.resize(last, [0, 0]);
        }
        for (byte, _) in children {
            self.slots[base + usize::from(*byte)][1] = node as u32 + 1;
        }
        self.slots[node][0] = base as u32;
        base
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn finds_exactly_the_prefixes(
            keys in prop::collection::btree_set(prop::collection::vec(prop_oneof![1u8..4, 250u8..=255, 1u8..=255], 1..8), 0..200),
            text in prop::collection::vec(prop_oneof![0u8..4, 250u8..=255], 0..12),
        ) {
            let keys: BTreeMap<Vec<u8>, u32> = keys.into_iter().zip(7..).collect();
            let sorted: Vec<(&[u8], u32)> = keys.iter().map(|(key, id)| (key.as_slice(), *id)).collect();
            let slots = build(&sorted);
            for text in keys.keys().chain([&text]) {
                let expected: Vec<(usize, u32)> =
                    (1..=text.len()).filter_map(|end| Some((end, *keys.get(&text[..end])?))).collect();
                let mut found = Vec::new();
                Trie(&slots).each_prefix(text, |end, id| found.push((end, id)));
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn damaged_slots_do_no_harm(
            slots in prop::collection::vec([0u32..40, 0u32..40], 0..40),
            text in prop::collection::vec(0u8..40, 0..12),
        ) {
            Trie(&slots).each_prefix(&text, |end, _| assert!(end <= text.len()));
        }
    }
}
