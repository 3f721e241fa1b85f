//! Canonical JSON and fingerprints: two calls are equal whatever the order of their keys.

use serde_json::Value;

/// A hash over texts, each with its length before it, so that `ab, c` is not `a, bc`.
#[derive(Default)]
pub(crate) struct Fingerprint(blake3::Hasher);

impl Fingerprint {
    /// The fingerprint of these texts, in order.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut this = Self::default();
        parts.into_iter().for_each(|part| this.add(part));
        this
    }

    pub(crate) fn add(&mut self, part: &str) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part.as_bytes());
    }

    /// All of it, as 64 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    /// Its first eight bytes, where a collision does no harm.
    pub(crate) fn short(&self) -> u64 {
        let mut bytes = [0; 8];
        self.0.finalize_xof().fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// A value as JSON text that does not depend on the order of an object's keys.
pub(crate) fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            // Sorted here: whether a map keeps its order is decided by features of other crates.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(&Value::String(key.clone()), out);
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
