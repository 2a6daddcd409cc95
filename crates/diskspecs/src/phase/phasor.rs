//! Directions, and sums of them.

use std::f64::consts::TAU;

/// A unit vector, or a sum of such.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phasor {
    /// Along a turn of 0.
    pub real: f64,
    /// Along a quarter of a turn.
    pub imaginary: f64,
}

impl Phasor {
    /// Returns the unit vector at an angle in revolutions.
    pub fn at(turns: f64) -> Phasor {
        let (imaginary, real) = (TAU * turns.fract()).sin_cos();
        Phasor { real, imaginary }
    }

    /// Adds two vectors.
    pub fn plus(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real + other.real,
            imaginary: self.imaginary + other.imaginary,
        }
    }

    /// Subtracts a vector.
    pub fn minus(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real - other.real,
            imaginary: self.imaginary - other.imaginary,
        }
    }

    /// Turns a vector by the angle of another, and scales it by that one's length.
    pub fn times(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real * other.real - self.imaginary * other.imaginary,
            imaginary: self.real * other.imaginary + self.imaginary * other.real,
        }
    }

    /// Turns a vector back by the angle of another, and scales it by that one's length.
    pub fn against(self, other: Phasor) -> Phasor {
        self.times(Phasor {
            real: other.real,
            imaginary: -other.imaginary,
        })
    }

    /// Returns the length.
    pub fn length(self) -> f64 {
        self.real.hypot(self.imaginary)
    }

    /// Returns the angle in revolutions, from -0.5 to 0.5; 0 of a vector without length.
    pub fn turns(self) -> f64 {
        self.imaginary.atan2(self.real) / TAU
    }
}

impl std::iter::Sum for Phasor {
    fn sum<I: Iterator<Item = Phasor>>(all: I) -> Phasor {
        all.fold(Phasor::default(), Phasor::plus)
    }
}
