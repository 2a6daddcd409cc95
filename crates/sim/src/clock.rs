//! The seam between virtual time and whatever has to keep up with it.

use crate::time::Time;

/// Told of every step of virtual time before what happens then is done.
///
/// [`Virtual`] lets time run as fast as it can. A clock that sleeps until the
/// wall has come as far lets a model serve clients of the real world.
pub trait Clock {
    /// Returns when the moment `to` has come.
    fn advance(&self, to: Time);
}

/// Time costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Virtual;

impl Clock for Virtual {
    #[inline]
    fn advance(&self, _to: Time) {}
}
