//! Unit vectors for angles, and sums of such vectors.

use std::f64::consts::TAU;

/// Unit vector of an angle, or a sum of such vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phasor {
    /// Component in the direction of angle 0.
    pub real: f64,
    /// Component in the direction of a quarter revolution.
    pub imaginary: f64,
}

impl Phasor {
    /// Returns the unit vector of an angle in revolutions.
    pub fn from_revolutions(turns: f64) -> Phasor {
        let (imaginary, real) = (TAU * turns.fract()).sin_cos();
        Phasor { real, imaginary }
    }

    /// Returns the vector sum.
    pub fn plus(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real + other.real,
            imaginary: self.imaginary + other.imaginary,
        }
    }

    /// Returns the vector difference.
    pub fn minus(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real - other.real,
            imaginary: self.imaginary - other.imaginary,
        }
    }

    /// Rotates a vector by the angle of another vector and scales it by the length of that vector.
    pub fn times(self, other: Phasor) -> Phasor {
        Phasor {
            real: self.real * other.real - self.imaginary * other.imaginary,
            imaginary: self.real * other.imaginary + self.imaginary * other.real,
        }
    }

    /// Rotates a vector backward by the angle of another vector and scales it by the length of that
    /// vector.
    pub fn times_conjugate(self, other: Phasor) -> Phasor {
        self.times(Phasor {
            real: other.real,
            imaginary: -other.imaginary,
        })
    }

    /// Returns the length of the vector.
    pub fn magnitude(self) -> f64 {
        self.real.hypot(self.imaginary)
    }

    /// Returns the angle of the vector in revolutions, from -0.5 to 0.5; 0 for a vector of length
    /// 0.
    pub fn to_revolutions(self) -> f64 {
        self.imaginary.atan2(self.real) / TAU
    }
}

impl std::iter::Sum for Phasor {
    fn sum<I: Iterator<Item = Phasor>>(all: I) -> Phasor {
        all.fold(Phasor::default(), Phasor::plus)
    }
}
