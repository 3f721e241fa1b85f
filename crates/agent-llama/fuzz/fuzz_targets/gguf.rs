//! The header of a model's file: any bytes are read or refused, and take no more memory than the file has.

#![no_main]

use agent_llama::Gguf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(header) = Gguf::from_reader(data, data.len() as u64) {
        assert!(header.weight_bytes <= data.len() as u64);
        let _ = header.tool_format();
    }
});
