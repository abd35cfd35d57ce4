//! The bound of one reply: whether data fits it, and how much of something does.

use serde_json::Value;

use super::Frame;
use super::form::Form;
use crate::limits::FRAME_BYTES;

/// A reply on its way to being bounded: everything but its data.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub frame: Frame<'a>,
    pub form: Form,
    /// What the reply may cost, its frame on the wire left aside.
    pub room: usize,
}

/// A page that is less full than this is not left so for an item that needs cutting anyway.
const FILLED_PERCENT_MIN: usize = 60;

impl Bound<'_> {
    /// The envelope around `data`, when its reply keeps the bound.
    pub fn seal(&self, data: Value) -> Option<Value> {
        let envelope = self.frame.success(data);
        (self.form.cost(&envelope) <= self.room).then_some(envelope)
    }

    /// The same with half of the room that there is for data.
    pub fn half(mut self) -> Self {
        let fixed = self.form.cost(&self.frame.success(Value::Null));
        self.room = fixed + self.room.saturating_sub(fixed) / 2;
        self
    }

    /// Whether the reply with this envelope has a good part of its room left.
    pub fn is_sparse(&self, envelope: &Value) -> bool {
        self.form.cost(envelope) < (self.room + FRAME_BYTES) * FILLED_PERCENT_MIN / 100
    }
}

/// Halves a range of sizes until the largest that fits is known, to within `step`.
pub(super) struct Halving {
    fits: usize,
    exceeds: usize,
    step: usize,
}

impl Halving {
    /// Sizes above zero and below `exceeds`.
    pub fn below(exceeds: usize, step: usize) -> Self {
        Self { fits: 0, exceeds, step: step.max(1) }
    }

    /// The size to try next.
    pub fn next(&self) -> Option<usize> {
        (self.exceeds - self.fits > self.step).then_some(self.fits + (self.exceeds - self.fits) / 2)
    }

    /// The size that was tried last fits, or does not.
    pub fn tried(&mut self, size: usize, fits: bool) {
        *(if fits { &mut self.fits } else { &mut self.exceeds }) = size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_finds_the_largest_that_fits() {
        for (exceeds, largest) in [(1, 0), (2, 1), (500, 499), (500, 1), (500, 0), (501, 250)] {
            let mut halving = Halving::below(exceeds, 1);
            while let Some(size) = halving.next() {
                halving.tried(size, size <= largest);
            }
            assert_eq!(halving.fits, largest, "of sizes below {exceeds}");
        }
    }
}
