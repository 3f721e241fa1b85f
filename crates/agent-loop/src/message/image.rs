//! Images that a person's message holds, and the message that holds them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::Message;

/// An image. Which types and sizes a model takes is for its provider to say; PNG, JPEG, WebP and GIF are common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Image {
    /// The image itself, sent with every request.
    Inline {
        /// `image/png`, `image/jpeg` …
        media_type: String,
        /// Its bytes in Base64.
        base64: String,
    },
    /// An address from which the provider fetches it.
    Url {
        /// The address.
        url: String,
    },
}

impl Image {
    /// The image itself, by its bytes.
    pub fn new(media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Inline { media_type: media_type.into(), base64: STANDARD.encode(bytes) }
    }

    /// An image that the provider fetches. Ollama fetches none.
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url { url: url.into() }
    }

    /// Its address; that of an inline image has the bytes in it.
    pub(crate) fn to_url(&self) -> String {
        match self {
            Self::Inline { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
            Self::Url { url } => url.clone(),
        }
    }
}

/// What a person says. Made from any text, to which images can be added.
///
/// ```
/// use agent_loop::{Image, UserMessage};
///
/// let message = UserMessage::from("What is this?").image(Image::url("https://example.org/cat.png"));
/// assert_eq!(message.images.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The images, which models are shown before the text.
    pub images: Vec<Image>,
}

impl UserMessage {
    /// Adds an image.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.images.push(image);
        self
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

impl From<UserMessage> for Message {
    fn from(UserMessage { text, images }: UserMessage) -> Self {
        Self::User { text, images }
    }
}
