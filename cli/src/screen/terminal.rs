//! The terminal: writes cells and styles as escape sequences (ECMA-48) to the terminal of
//! stderr, and reads single keys.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Switches to the alternate screen without a cursor, and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?1049l\x1b[?25h";

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Escape,
    /// Ctrl-C, which a terminal in raw mode sends as a key.
    Interrupt,
}

/// How long restoring waits for a terminal that is not read.
const LEAVE_WITHIN: Duration = Duration::from_millis(200);

/// Most buffers that wait to be written, more than one drawing, its beginning and its end need.
const BUFFERS: usize = 8;

/// The keyboard in raw mode; dropping it restores the terminal.
pub(super) struct Keyboard {
    tty: File,
    before: Termios,
    writer: Option<Writer>,
    /// Disconnected when everything is written.
    written: Receiver<()>,
}

/// Passes bytes to a thread that writes them to stderr, so that a terminal that is not read holds only that thread.
#[derive(Clone)]
struct Writer {
    bytes: SyncSender<Vec<u8>>,
    /// Buffers that are not written yet.
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    /// Starts the thread. What it returns second is disconnected when all writers are gone and their bytes are written.
    fn start() -> io::Result<(Self, Receiver<()>)> {
        let (bytes, received) = mpsc::sync_channel::<Vec<u8>>(BUFFERS);
        let (ending, written) = mpsc::sync_channel(0);
        let own = Self { bytes, waiting: Arc::default() };
        let waiting = Arc::clone(&own.waiting);
        std::thread::Builder::new().name("screen".into()).spawn(move || {
            let _ending: SyncSender<()> = ending;
            for bytes in received {
                // Ignore the error: the run continues without its terminal.
                let _ = io::stderr().write_all(&bytes);
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok((own, written))
    }

    fn write(&self, bytes: Vec<u8>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // There is room: a drawing waits for the one before.
        let _ = self.bytes.try_send(bytes);
    }
}

impl Keyboard {
    /// Puts the terminal of stdin, or that of the session, into raw mode.
    pub(super) fn open() -> io::Result<Self> {
        let tty = if io::stdin().is_terminal() {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            File::open("/dev/tty")?
        };
        let (writer, written) = Writer::start()?;
        let before = tcgetattr(&tty)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&tty, OptionalActions::Now, &raw)?;
        writer.write(ENTER.to_vec());
        Ok(Self { tty, before, writer: Some(writer), written })
    }

    /// A backend for the same terminal.
    pub(super) fn ansi(&self) -> Ansi {
        Ansi { writer: self.writer.clone(), out: Vec::new() }
    }

    /// Keys pressed since the last call.
    pub(super) fn keys(&mut self) -> Vec<Key> {
        let mut bytes = [0; 64];
        let mut keys = Vec::new();
        while self.has_input() {
            let Ok(count @ 1..) = self.tty.read(&mut bytes) else { break };
            keys.extend(keys_of(&bytes[..count]));
        }
        keys
    }

    fn has_input(&self) -> bool {
        let mut tty = [PollFd::new(&self.tty, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut tty, Some(&now)).is_ok_and(|ready| ready > 0)
            && tty[0].revents().contains(PollFlags::IN)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Ignore errors: a terminal that is closed or not read cannot be restored.
        self.writer.take().into_iter().for_each(|writer| writer.write(LEAVE.to_vec()));
        let _ = self.written.recv_timeout(LEAVE_WITHIN);
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
    }
}

/// Keys in the bytes of one read. Escape sequences such as arrows are ignored.
fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                rest = &sequence[end.map_or(sequence.len(), |end| end + 1)..];
            }
            (0x1b, _) => keys.push(Key::Escape),
            (0x03, _) => keys.push(Key::Interrupt),
            (byte, _) if byte.is_ascii_graphic() => keys.push(Key::Char(char::from(*byte))),
            _ => {}
        }
    }
    keys
}

/// A backend that buffers escape sequences for the terminal. It never waits.
#[derive(Default)]
pub(super) struct Ansi {
    writer: Option<Writer>,
    out: Vec<u8>,
}

impl Ansi {
    /// Whether the terminal has not taken everything yet.
    pub(super) fn is_behind(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.waiting.load(Ordering::Relaxed) > 0)
    }

    fn push(&mut self, sequence: &str) {
        self.out.extend_from_slice(sequence.as_bytes());
    }

    fn style(&mut self, cell: &Cell) {
        self.push("\x1b[0");
        for (modifier, code) in
            [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")]
        {
            if cell.modifier.contains(modifier) {
                self.push(code);
            }
        }
        if let Some(color) = number(cell.fg) {
            self.push(&format!(";{}", 30 + color));
        }
        if let Some(color) = number(cell.bg) {
            self.push(&format!(";{}", 40 + color));
        }
        self.push("m");
    }
}

/// The number of a colour, if it is one of the eight standard ones.
fn number(color: Color) -> Option<u8> {
    Some(match color {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::White => 7,
        _ => return None,
    })
}

impl Backend for Ansi {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.push(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            let own = (cell.fg, cell.bg, cell.modifier);
            if style != Some(own) {
                self.style(cell);
                style = Some(own);
            }
            self.push(cell.symbol());
            next = Some((x + 1, y));
        }
        self.push("\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.push("\x1b[?25l");
        Ok(())
    }

    /// Does nothing: the cursor stays hidden until the terminal is restored.
    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Not used; returns the origin.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.push(&format!("\x1b[{};{}H", y + 1, x + 1));
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.push(match region {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stderr())?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        let size = tcgetwinsize(io::stderr())?;
        Ok(WindowSize {
            columns_rows: Size::new(size.ws_col, size.ws_row),
            pixels: Size::new(size.ws_xpixel, size.ws_ypixel),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        if let Some(writer) = &self.writer
            && !out.is_empty()
        {
            writer.write(out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinguished_from_escape_sequences() {
        use Key::{Char, Escape, Interrupt};
        assert_eq!(keys_of(b"q"), [Char('q')]);
        assert_eq!(keys_of(b"\x1b"), [Escape]);
        assert_eq!(keys_of(b"\x03q"), [Interrupt, Char('q')]);
        // An arrow, a function key, a key with a modifier, and an incomplete sequence.
        assert_eq!(keys_of(b"\x1b[A\x1bOP\x1b[1;5Cx\x1b[1;"), [Char('x')]);
    }

    #[test]
    fn cells_are_written_with_position_and_style() {
        let mut cell = Cell::new("x");
        cell.fg = Color::Red;
        cell.modifier = Modifier::BOLD;
        let mut ansi = Ansi::default();
        ansi.draw([(2, 0, &cell), (3, 0, &cell), (0, 5, &Cell::new("y"))].into_iter()).unwrap();
        let text = String::from_utf8(ansi.out).unwrap();
        assert_eq!(text, "\x1b[1;3H\x1b[0;1;31mxx\x1b[6;1H\x1b[0my\x1b[0m");
    }
}
