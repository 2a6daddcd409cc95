//! System call that a program makes and awaits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Call of [`System`](crate::System), from its start until its result is taken.
///
/// The future of a modelled call contains the whole kernel. Behind a pointer it is compiled once,
/// with the models, and not again in every program that makes the call.
#[must_use = "a call does nothing unless awaited"]
pub struct SystemCall<'a, T>(CallState<'a, T>);

enum CallState<'a, T> {
    /// Finished call on real storage, with its result until the program takes it.
    #[cfg(feature = "host")]
    FinishedCall(Option<T>),
    /// Call on a model: virtual time passes while it is polled.
    ModelledCall(Pin<Box<dyn Future<Output = T> + 'a>>),
}

impl<'a, T> SystemCall<'a, T> {
    #[cfg(feature = "host")]
    #[inline]
    pub(crate) fn new_finished(result: T) -> Self {
        Self(CallState::FinishedCall(Some(result)))
    }

    pub(crate) fn new_modelled(call: impl Future<Output = T> + 'a) -> Self {
        Self(CallState::ModelledCall(Box::pin(call)))
    }
}

impl<T: Unpin> Future for SystemCall<'_, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.get_mut().0 {
            #[cfg(feature = "host")]
            CallState::FinishedCall(result) => {
                Poll::Ready(result.take().expect("a call has one result"))
            }
            CallState::ModelledCall(call) => call.as_mut().poll(context),
        }
    }
}
