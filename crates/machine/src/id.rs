//! Numbers of controllers and drives whose type carries the kind of component.

use std::fmt;
use std::marker::PhantomData;

/// Number of a controller or drive among those of its kind; the kind is part of the type.
pub struct ComponentId<C> {
    index: u8,
    component_kind: PhantomData<fn() -> C>,
}

impl<C> ComponentId<C> {
    pub(crate) fn from_index(place: usize) -> Self {
        Self {
            index: u8::try_from(place).expect("fewer than 256 of a kind"),
            component_kind: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.index)
    }
}

impl<C> Clone for ComponentId<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for ComponentId<C> {}

impl<C> PartialEq for ComponentId<C> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<C> Eq for ComponentId<C> {}

impl<C> fmt::Debug for ComponentId<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(formatter)
    }
}
