//! Numbers of controllers and drives whose type carries the kind of component.

use std::fmt;
use std::marker::PhantomData;

/// Number of a controller or drive among those of its kind; the kind is part of the type.
pub struct Id<C> {
    place: u8,
    kind: PhantomData<fn() -> C>,
}

impl<C> Id<C> {
    pub(crate) fn of_place(place: usize) -> Self {
        Self {
            place: u8::try_from(place).expect("fewer than 256 of a kind"),
            kind: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn place(self) -> usize {
        usize::from(self.place)
    }
}

impl<C> Clone for Id<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Id<C> {}

impl<C> PartialEq for Id<C> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<C> Eq for Id<C> {}

impl<C> fmt::Debug for Id<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(formatter)
    }
}
