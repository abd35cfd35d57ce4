//! Numbers, names and identifiers from a seed: the same on every machine, and as hard to compress as the
//! identifiers of a real gateway.

/// splitmix64.
pub struct Random(u64);

const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least `low` and below `high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low)
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, in_thousand: u64) -> bool {
        self.number() % 1000 < in_thousand
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.number() % from.len() as u64) as usize]
    }

    /// Milliseconds as a browser tells them, with noise in the last places.
    pub fn milliseconds(&mut self, low: u64, high: u64) -> f64 {
        self.within(low * 1000, high * 1000) as f64 / 1000.0
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(alphabet))).collect()
    }

    /// `length` of `0-9a-z`.
    pub fn suffix(&mut self, length: usize) -> String {
        self.text(ALPHABET, length)
    }

    pub fn hexadecimal(&mut self, length: usize) -> String {
        self.text(HEXADECIMAL, length)
    }

    /// In the form of a UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let digits = self.hexadecimal(31);
        format!("{}-{}-4{}-a{}-{}", &digits[..8], &digits[8..12], &digits[12..15], &digits[15..18], &digits[18..30])
    }
}
