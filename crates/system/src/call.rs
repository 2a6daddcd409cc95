//! A call that a program made and awaits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A call of [`System`](crate::System), from when it is made until its result is taken.
///
/// The future of a modelled call has the whole kernel in it. Behind a pointer it is compiled
/// once, with the models, and not anew in every program that makes the call.
#[must_use = "a call does nothing unless awaited"]
pub struct SystemCall<'a, T>(State<'a, T>);

enum State<'a, T> {
    /// Real storage: the call was made, and its result is there until it is taken.
    #[cfg(feature = "host")]
    Made(Option<T>),
    /// A model: virtual time passes in it.
    Modelled(Pin<Box<dyn Future<Output = T> + 'a>>),
}

impl<'a, T> SystemCall<'a, T> {
    #[cfg(feature = "host")]
    #[inline]
    pub(crate) fn made(result: T) -> Self {
        Self(State::Made(Some(result)))
    }

    pub(crate) fn modelled(call: impl Future<Output = T> + 'a) -> Self {
        Self(State::Modelled(Box::pin(call)))
    }
}

impl<T: Unpin> Future for SystemCall<'_, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.get_mut().0 {
            #[cfg(feature = "host")]
            State::Made(result) => Poll::Ready(result.take().expect("a call has one result")),
            State::Modelled(call) => call.as_mut().poll(context),
        }
    }
}
