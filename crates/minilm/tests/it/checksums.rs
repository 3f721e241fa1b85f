//! The shipped bytes are those of the recipe, and the model's id is theirs.

use std::path::Path;

use minilm_weights_1 as part_1;
use minilm_weights_2 as part_2;
use minilm_weights_3 as part_3;
use sha2::{Digest, Sha256};

const SHIPPED: [(&str, &[u8]); 5] = [
    ("weights-1/minilm-1.data", part_1::BYTES),
    ("weights-2/minilm-2.data", part_2::BYTES),
    ("weights-3/minilm-3.data", part_3::BYTES),
    ("weights-3/minilm.onnx", part_3::GRAPH),
    ("weights-3/vocab.txt", part_3::VOCABULARY.as_bytes()),
];

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_file_has_its_checksum() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let mut seen = 0;
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        if name.starts_with("recipe/input/") {
            continue;
        }
        let found = hex(Sha256::digest(std::fs::read(folder.join(name)).unwrap()));
        assert_eq!(found, sum, "{name}");
        if let Some((_, bytes)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            assert_eq!(hex(Sha256::digest(bytes)), sum, "{name} in the program");
            seen += 1;
        }
    }
    assert_eq!(seen, SHIPPED.len());
}

#[test]
fn the_vocabulary_is_the_original_one() {
    let sums = include_str!("../../SHA256SUMS");
    let original = sums.lines().find_map(|line| line.strip_suffix("  recipe/input/vocab.txt"));
    assert_eq!(original, Some(hex(Sha256::digest(part_3::VOCABULARY))).as_deref());
}

#[test]
fn the_id_changes_with_the_model() {
    let all = SHIPPED.iter().fold(Sha256::new(), |hash, (_, bytes)| hash.chain_update(bytes));
    let digits = &hex(all.finalize())[..8];
    assert_eq!(minilm::ID, format!("minilm-l6-v2-int8-{digits}"));
}
