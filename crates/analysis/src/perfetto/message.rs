//! A message of protocol buffers being written: fields with their numbers.

/// The kinds of field that are written here, by the format's numbers.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
}

/// A message.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A number, as a varint.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Varint);
        self.varint(value);
    }

    /// A number of eight bytes.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    /// A text.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.length(field, text.as_bytes());
    }

    /// Another message.
    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.length(field, &message.0);
    }

    /// What was written.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn length(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, Wire::Length);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// Seven bits to a byte, the lowest first; all but the last byte are marked.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn fields_are_as_the_format_documents_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        let expected = [
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g',
        ];
        assert_eq!(message.bytes(), expected);
        let mut fixed = Message::default();
        fixed.fixed(47, 1);
        assert_eq!(fixed.bytes(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
