//! Images, and the messages of a person that contain them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::Message;

/// An image. Each provider decides which types and sizes its models accept; PNG, JPEG, WebP and GIF are common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Image {
    /// The image data, sent with every request.
    Inline {
        /// The media type, for example `image/png`.
        media_type: String,
        /// The data in Base64.
        base64: String,
    },
    /// A URL from which the provider fetches the image.
    Url {
        /// The URL.
        url: String,
    },
}

impl Image {
    /// Creates an image from its data.
    pub fn new(media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Inline { media_type: media_type.into(), base64: STANDARD.encode(bytes) }
    }

    /// Creates an image that the provider fetches. Ollama does not fetch images.
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url { url: url.into() }
    }

    /// Returns the image's URL; for an inline image, a `data:` URL.
    pub(crate) fn to_url(&self) -> String {
        match self {
            Self::Inline { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
            Self::Url { url } => url.clone(),
        }
    }
}

/// A person's message. Any text converts to it, and images can be added.
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
    /// The images, which come before the text in a request.
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
