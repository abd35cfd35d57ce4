//! The request id of a line that is no JSON, or too long to keep: whoever sent it can only stop
//! waiting for an answer that names it.
//!
//! A wrong id would end somebody else's wait, so only a whole `id` member of the outermost object
//! counts. The search sees the line in pieces and holds a bounded part of it.

use serde_json::Value;

use crate::limits::IDENTIFIER_BYTES_MAX;

/// A search through one line.
#[derive(Debug, Default)]
pub struct IdSearch {
    depth: u64,
    in_text: bool,
    escaped: bool,
    /// Whether the outermost object's member is past its colon.
    in_value: bool,
    /// The member's name, or the value of `id`, as it stands there; `None` when it is of no use.
    token: Option<Vec<u8>>,
    found: Option<Value>,
}

impl IdSearch {
    /// The id of a line that is there as a whole.
    #[must_use]
    pub fn through(line: &[u8]) -> Option<Value> {
        let mut search = Self::default();
        search.feed(line);
        search.found()
    }

    /// What was found so far.
    #[must_use]
    pub fn found(self) -> Option<Value> {
        self.found
    }

    pub fn feed(&mut self, piece: &[u8]) {
        for byte in piece {
            if self.found.is_some() {
                return;
            }
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' if self.depth == 0 => {
                self.depth = 1;
                self.begin_member();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.token = None;
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.begin_member();
            }
            b':' if self.depth == 1 => {
                let is_id = self.token.take().is_some_and(|name| name == b"\"id\"");
                self.in_value = true;
                self.token = is_id.then(Vec::new);
            }
            b' ' | b'\t' | b'\r' if !self.in_value => {}
            _ => self.keep(byte),
        }
    }

    fn begin_member(&mut self) {
        self.in_value = false;
        self.token = Some(Vec::new());
    }

    fn keep(&mut self, byte: u8) {
        if let Some(token) = self.token.as_mut().filter(|_| self.depth == 1) {
            token.push(byte);
            if token.len() > IDENTIFIER_BYTES_MAX {
                self.token = None;
            }
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 || !self.in_value {
            return;
        }
        let id = self.token.take().and_then(|token| serde_json::from_slice(&token).ok());
        self.found = id.filter(|id: &Value| id.is_string() || id.is_i64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_requests_own_id_counts() {
        let found = |line: &str| IdSearch::through(line.as_bytes());
        assert_eq!(found(r#"{"jsonrpc":"2.0","id":7,"params":{"#), Some(json!(7)));
        assert_eq!(found(r#"{"params":{"id":1,"x":[{"id":2}]},"id" : "a\"b" , "#), Some(json!("a\"b")));
        assert_eq!(found(r#"{"method":"id","params":1e400,"id":-3}"#), Some(json!(-3)));
        assert_eq!(found(r#"{"id":null,"method":"x"}"#), None);
        assert_eq!(found(r#"{"id":7"#), None, "a number may be cut short");
        assert_eq!(found(r#"{"text":"\"id\":1,","id":{"id":2},"#), None);
        assert_eq!(found(r#"[{"id":1}]"#), None, "there are no batches");
        assert_eq!(found(r#"{"id":1 2,"#), None);
        let long = format!(r#"{{"id":"{}","#, "x".repeat(IDENTIFIER_BYTES_MAX));
        assert_eq!(found(&long), None);
    }
}
