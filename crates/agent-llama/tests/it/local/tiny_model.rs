//! Writes GGUF files: a Llama of two layers with random weights, a vocabulary of characters and a template of its own.
//! Seeded, so that a file is always the same.

use std::path::{Path, PathBuf};

const WIDTH: usize = 64;
const HEADS: u32 = 4;
const KV_HEADS: u32 = 2;
const FEED_FORWARD: usize = 96;
const LAYERS: usize = 2;

/// ChatML with Hermes' calls, as most small models have it.
pub const TEMPLATE: &str = "{%- if tools %}<|im_start|>system\n\
    {%- if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}Tools:\
    {%- for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|im_end|>\n{% elif messages[0].role == 'system' %}<|im_start|>system\n\
    {{ messages[0].content }}<|im_end|>\n{% endif %}\
    {%- for m in messages %}\
    {%- if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n\
    {% elif m.role == 'assistant' %}<|im_start|>assistant\n{{ m.content }}\
    {%- for call in m.tool_calls %}{% if m.content or not loop.first %}{{ '\\n' }}{% endif %}<tool_call>\n\
    {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n\
    </tool_call>{% endfor %}<|im_end|>\n\
    {% elif m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n{% endif %}\
    {%- endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A model to write.
#[derive(Clone)]
pub struct TinyModel {
    pub seed: u64,
    pub template: Option<String>,
    pub architecture: &'static str,
    pub version: u32,
    pub adds_bos: bool,
    /// Tokens beside characters and bytes, each with its kind: 3 is special, 4 is found whole in any text.
    pub tokens: Vec<(&'static str, u32)>,
    /// How much likelier than others a token is, wherever it stands.
    pub bias: Vec<(&'static str, f32)>,
}

impl TinyModel {
    pub fn new(seed: u64) -> Self {
        let tokens = vec![
            ("<|im_start|>", 3),
            ("<|im_end|>", 3),
            ("<tool_call>", 4),
            ("</tool_call>", 4),
            ("<think>", 4),
            ("</think>", 4),
            // A mark with what may stand around it.
            ("well, <tool_call>\n{\"na", 4),
        ];
        Self {
            seed,
            template: Some(TEMPLATE.into()),
            architecture: "llama",
            version: 3,
            adds_bos: true,
            tokens,
            bias: Vec::new(),
        }
    }

    pub fn template(mut self, template: Option<&str>) -> Self {
        self.template = template.map(String::from);
        self
    }

    pub fn bias(mut self, bias: &[(&'static str, f32)]) -> Self {
        self.bias = bias.to_vec();
        self
    }

    /// No token is put before a prompt.
    pub fn without_bos(mut self) -> Self {
        self.adds_bos = false;
        self
    }

    /// One that never ends a reply.
    pub fn endless(self) -> Self {
        self.bias(&[("</s>", -60.0), ("<|im_end|>", -60.0)])
    }

    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join(format!("tiny-{}.gguf", self.seed));
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    fn vocabulary(&self) -> Vec<(String, u32)> {
        let special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)];
        let own = special.iter().chain(&self.tokens).map(|(text, kind)| (text.to_string(), *kind));
        let bytes = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), 6));
        let characters = (33..127_u8).map(|byte| (char::from(byte).to_string(), 1));
        own.chain(bytes).chain([("▁".into(), 1)]).chain(characters).collect()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let vocabulary = self.vocabulary();
        let mut header = Header::default();
        header.text("general.architecture", self.architecture);
        header.text("general.name", "Tiny");
        let of_model = |key: &str| format!("{}.{key}", self.architecture);
        for (key, value) in [
            ("context_length", 4_096),
            ("embedding_length", WIDTH as u32),
            ("block_count", LAYERS as u32),
            ("feed_forward_length", FEED_FORWARD as u32),
            ("attention.head_count", HEADS),
            ("attention.head_count_kv", KV_HEADS),
        ] {
            header.number(&of_model(key), value);
        }
        header.entry(&of_model("attention.layer_norm_rms_epsilon"), 6, &1e-5_f32.to_le_bytes());
        header.text("tokenizer.ggml.model", "llama");
        let texts: Vec<u8> = vocabulary.iter().flat_map(|(text, _)| text_bytes(text)).collect();
        header.list("tokenizer.ggml.tokens", 8, vocabulary.len(), &texts);
        let scores: Vec<u8> = (0..vocabulary.len()).flat_map(|_| 0_f32.to_le_bytes()).collect();
        header.list("tokenizer.ggml.scores", 6, vocabulary.len(), &scores);
        let kinds: Vec<u8> = vocabulary.iter().flat_map(|(_, kind)| kind.to_le_bytes()).collect();
        header.list("tokenizer.ggml.token_type", 5, vocabulary.len(), &kinds);
        header.number("tokenizer.ggml.bos_token_id", 1);
        header.number("tokenizer.ggml.eos_token_id", 2);
        header.number("tokenizer.ggml.unknown_token_id", 0);
        header.entry("tokenizer.ggml.add_bos_token", 7, &[self.adds_bos.into()]);
        header.entry("tokenizer.ggml.add_space_prefix", 7, &[0]);
        if let Some(template) = &self.template {
            header.text("tokenizer.chat_template", template);
        }

        let mut random = Random(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut tensors = Tensors::default();
        let embeddings: Vec<f32> = (0..vocabulary.len() * WIDTH)
            // The first number is the same for all tokens, so that the output can favour some of them.
            .map(|at| if at % WIDTH == 0 { 8.0 } else { random.next() })
            .collect();
        tensors.add("token_embd.weight", &[WIDTH, vocabulary.len()], embeddings);
        tensors.add("output_norm.weight", &[WIDTH], vec![1.0; WIDTH]);
        let output: Vec<f32> = (0..vocabulary.len() * WIDTH)
            .map(|at| match (at % WIDTH, self.bias.iter().find(|(text, _)| *text == vocabulary[at / WIDTH].0)) {
                (0, Some((_, bias))) => *bias,
                (0, None) => 0.0,
                _ => random.next(),
            })
            .collect();
        tensors.add("output.weight", &[WIDTH, vocabulary.len()], output);
        let kv = WIDTH / (HEADS / KV_HEADS) as usize;
        for layer in 0..LAYERS {
            let mut weight = |name: &str, shape: &[usize]| {
                let count = shape.iter().product();
                let values = match shape.len() {
                    1 => vec![1.0; count],
                    _ => (0..count).map(|_| random.next() * 0.1).collect(),
                };
                tensors.add(&format!("blk.{layer}.{name}.weight"), shape, values);
            };
            weight("attn_norm", &[WIDTH]);
            weight("attn_q", &[WIDTH, WIDTH]);
            weight("attn_k", &[WIDTH, kv]);
            weight("attn_v", &[WIDTH, kv]);
            weight("attn_output", &[WIDTH, WIDTH]);
            weight("ffn_norm", &[WIDTH]);
            weight("ffn_gate", &[WIDTH, FEED_FORWARD]);
            weight("ffn_up", &[WIDTH, FEED_FORWARD]);
            weight("ffn_down", &[FEED_FORWARD, WIDTH]);
        }
        let mut file = [&b"GGUF"[..], &self.version.to_le_bytes()].concat();
        file.extend((tensors.count as u64).to_le_bytes());
        file.extend((header.count as u64).to_le_bytes());
        file.extend(header.bytes);
        file.extend(tensors.infos);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(tensors.data);
        file
    }
}

fn text_bytes(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

#[derive(Default)]
struct Header {
    count: usize,
    bytes: Vec<u8>,
}

impl Header {
    fn entry(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.count += 1;
        self.bytes.extend(text_bytes(key));
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(value);
    }

    fn text(&mut self, key: &str, text: &str) {
        self.entry(key, 8, &text_bytes(text));
    }

    fn number(&mut self, key: &str, number: u32) {
        self.entry(key, 4, &number.to_le_bytes());
    }

    fn list(&mut self, key: &str, kind: u32, count: usize, items: &[u8]) {
        self.entry(key, 9, &[&kind.to_le_bytes()[..], &(count as u64).to_le_bytes(), items].concat());
    }
}

#[derive(Default)]
struct Tensors {
    count: usize,
    infos: Vec<u8>,
    data: Vec<u8>,
}

impl Tensors {
    fn add(&mut self, name: &str, shape: &[usize], values: Vec<f32>) {
        self.count += 1;
        self.infos.extend(text_bytes(name));
        self.infos.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|size| self.infos.extend((*size as u64).to_le_bytes()));
        self.infos.extend(0_u32.to_le_bytes());
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.data.resize(self.data.len().next_multiple_of(32), 0);
    }
}

/// Numbers from -1 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
