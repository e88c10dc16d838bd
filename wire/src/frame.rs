//! Binary frames of `WS /api/terminal`, both directions: a first byte that says what follows. All numbers
//! are big-endian. One WebSocket message is one frame; text messages (the hello) are not frames.
//!
//! Must never look into the terminal's bytes.

use thiserror::Error;

/// Terminal bytes; keys on the way in.
const DATA: u8 = 0;
/// The size of a viewer's place; from the server, the size of the window.
const RESIZE: u8 = 1;
/// How much the viewer has consumed.
const CREDIT: u8 = 2;
/// Where the next data byte stands in the stream.
const OFFSET: u8 = 3;
/// The terminal's title.
const TITLE: u8 = 4;
/// Nothing more will come.
const END: u8 = 5;
/// Whether a viewer may decide the size of the window.
const HOLD: u8 = 6;

/// Names and first bytes of all frames, for the page's generated file.
pub(crate) const KINDS: [(&str, u8); 7] = [
    ("data", DATA),
    ("resize", RESIZE),
    ("credit", CREDIT),
    ("offset", OFFSET),
    ("title", TITLE),
    ("end", END),
    ("hold", HOLD),
];

/// Bytes the server may have in flight to one viewer before the first credit, and never more than this at
/// once: enough for a full redraw of a large screen, little enough that Ctrl-C is felt at once.
pub const INITIAL_CREDIT: u32 = 256 * 1024;

/// Longest title sent, in bytes; a program can set one of any length.
pub const TITLE_BYTES_MAX: usize = 1024;

/// From the server to a viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToViewer {
    /// What the terminal printed.
    Data(Vec<u8>),
    /// The size of the window, which is the grid that the data bytes draw on; sent first and after each change.
    Size {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
        /// By the choice of this viewer; otherwise its own size does not count now.
        own: bool,
    },
    /// Absolute offset of the next data byte; sent first and again after a gap or a redraw.
    Offset(u64),
    /// The terminal's title.
    Title(String),
    /// The end, with the reason in words.
    End(String),
}

/// What a viewer says of its page, for whom to let decide the size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is in front of nobody: whoever else looks may decide.
    Hidden,
    /// It is in front of somebody again.
    Seen,
    /// The person wants the window to fit here.
    Take,
}

/// From a viewer to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromViewer {
    /// Keys, or a paste.
    Data(Vec<u8>),
    /// Columns and rows; neither is ever zero.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Bytes that the viewer's terminal has consumed since its last credit.
    Credit(u32),
    /// Whether it may decide the size of the window.
    Hold(Hold),
}

/// A frame that can't be read. The connection is closed with this sentence.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// A message of no bytes.
    #[error("an empty frame")]
    Empty,
    /// A first byte that nobody sends in this direction.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    /// Too short or too long for its kind.
    #[error("a frame of kind {kind} has {got} bytes after the first, not {want}")]
    Length {
        /// Its first byte.
        kind: u8,
        /// Bytes after it.
        got: usize,
        /// Bytes there should be.
        want: usize,
    },
    /// A terminal can't have no columns or no rows.
    #[error("a size of {cols} by {rows}")]
    Size {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// A byte that stands for nothing.
    #[error("a frame of kind {kind} says {word}")]
    Word {
        /// Its first byte.
        kind: u8,
        /// What it says.
        word: u8,
    },
    /// Title and reason are UTF-8.
    #[error("text that is not UTF-8")]
    Text,
}

impl ToViewer {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Data(bytes) => framed(DATA, bytes),
            Self::Size { cols, rows, own } => {
                let mut payload = [0; 5];
                payload[..2].copy_from_slice(&cols.to_be_bytes());
                payload[2..4].copy_from_slice(&rows.to_be_bytes());
                payload[4] = u8::from(*own);
                framed(RESIZE, &payload)
            }
            Self::Offset(offset) => framed(OFFSET, &offset.to_be_bytes()),
            Self::Title(title) => framed(TITLE, cut(title, TITLE_BYTES_MAX).as_bytes()),
            Self::End(reason) => framed(END, cut(reason, TITLE_BYTES_MAX).as_bytes()),
        }
    }

    /// Reads a frame as a viewer does.
    ///
    /// # Errors
    /// The frame is none of ours.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (&kind, rest) = frame.split_first().ok_or(FrameError::Empty)?;
        match kind {
            DATA => Ok(Self::Data(rest.to_vec())),
            RESIZE => {
                let [a, b, c, d, own] = exactly(kind, rest)?;
                Ok(Self::Size {
                    cols: u16::from_be_bytes([a, b]),
                    rows: u16::from_be_bytes([c, d]),
                    own: match own {
                        0 => false,
                        1 => true,
                        other => return Err(FrameError::Word { kind, word: other }),
                    },
                })
            }
            OFFSET => Ok(Self::Offset(u64::from_be_bytes(exactly(kind, rest)?))),
            TITLE => Ok(Self::Title(text(rest)?)),
            END => Ok(Self::End(text(rest)?)),
            other => Err(FrameError::UnknownKind(other)),
        }
    }
}

impl FromViewer {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Data(bytes) => framed(DATA, bytes),
            Self::Resize { cols, rows } => {
                let mut payload = [0; 4];
                payload[..2].copy_from_slice(&cols.to_be_bytes());
                payload[2..].copy_from_slice(&rows.to_be_bytes());
                framed(RESIZE, &payload)
            }
            Self::Credit(bytes) => framed(CREDIT, &bytes.to_be_bytes()),
            Self::Hold(hold) => framed(
                HOLD,
                &[match hold {
                    Hold::Hidden => 0,
                    Hold::Seen => 1,
                    Hold::Take => 2,
                }],
            ),
        }
    }

    /// Reads a frame as the server does.
    ///
    /// # Errors
    /// The frame is none of ours, or a size with a zero in it.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (&kind, rest) = frame.split_first().ok_or(FrameError::Empty)?;
        match kind {
            DATA => Ok(Self::Data(rest.to_vec())),
            RESIZE => {
                let [a, b, c, d] = exactly(kind, rest)?;
                let (cols, rows) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                if cols == 0 || rows == 0 {
                    return Err(FrameError::Size { cols, rows });
                }
                Ok(Self::Resize { cols, rows })
            }
            CREDIT => Ok(Self::Credit(u32::from_be_bytes(exactly(kind, rest)?))),
            HOLD => {
                let [word] = exactly(kind, rest)?;
                Ok(Self::Hold(match word {
                    0 => Hold::Hidden,
                    1 => Hold::Seen,
                    2 => Hold::Take,
                    other => return Err(FrameError::Word { kind, word: other }),
                }))
            }
            other => Err(FrameError::UnknownKind(other)),
        }
    }
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 1);
    frame.push(kind);
    frame.extend_from_slice(payload);
    frame
}

fn exactly<const N: usize>(kind: u8, rest: &[u8]) -> Result<[u8; N], FrameError> {
    rest.try_into().map_err(|_| FrameError::Length {
        kind,
        got: rest.len(),
        want: N,
    })
}

fn text(rest: &[u8]) -> Result<String, FrameError> {
    String::from_utf8(rest.to_vec()).map_err(|_| FrameError::Text)
}

/// The longest prefix of at most `max` bytes that ends between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_have_the_documented_bytes() {
        assert_eq!(ToViewer::Data(b"hi".to_vec()).encode(), b"\x00hi");
        assert_eq!(
            FromViewer::Resize { cols: 80, rows: 24 }.encode(),
            [1, 0, 80, 0, 24]
        );
        assert_eq!(
            ToViewer::Size {
                cols: 300,
                rows: 24,
                own: true
            }
            .encode(),
            [1, 1, 44, 0, 24, 1]
        );
        assert_eq!(FromViewer::Hold(Hold::Take).encode(), [6, 2]);
        assert_eq!(FromViewer::Credit(258).encode(), [2, 0, 0, 1, 2]);
        assert_eq!(
            ToViewer::Offset(1 << 33).encode(),
            [3, 0, 0, 0, 2, 0, 0, 0, 0]
        );
        assert_eq!(ToViewer::Title("é".into()).encode(), [4, 0xc3, 0xa9]);
        assert_eq!(ToViewer::End("gone".into()).encode(), b"\x05gone");
    }

    #[test]
    fn what_is_no_frame_is_refused_in_words() {
        assert_eq!(FromViewer::decode(&[]), Err(FrameError::Empty));
        assert_eq!(FromViewer::decode(&[9]), Err(FrameError::UnknownKind(9)));
        assert_eq!(
            FromViewer::decode(&[3, 0, 0, 0, 0, 0, 0, 0, 0]),
            Err(FrameError::UnknownKind(3))
        );
        assert_eq!(
            FromViewer::decode(&[1, 0, 80, 0]),
            Err(FrameError::Length {
                kind: 1,
                got: 3,
                want: 4
            })
        );
        assert_eq!(
            FromViewer::decode(&[1, 0, 0, 0, 24]),
            Err(FrameError::Size { cols: 0, rows: 24 })
        );
        assert_eq!(ToViewer::decode(&[4, 0xff]), Err(FrameError::Text));
    }

    #[test]
    fn a_long_title_is_cut_between_characters() {
        let frame = ToViewer::Title("漢".repeat(1000)).encode();
        assert!(frame.len() <= TITLE_BYTES_MAX + 1);
        assert!(std::str::from_utf8(&frame[1..]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(frame) = FromViewer::decode(&bytes) {
                prop_assert_eq!(frame.encode(), bytes.clone());
            }
            if let Ok(frame) = ToViewer::decode(&bytes) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }
}
