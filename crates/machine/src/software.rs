//! What programs run on: a kernel on its computer, or drives by themselves.

use crate::kernel::computer::Computer;
use crate::kernel::list::each_kernel;
use crate::kernel::process::Process;
use crate::rig::Rig;
use std::rc::Rc;

/// A kernel that runs.
pub(crate) trait RunningKernel {
    /// Starts its interrupt handlers and its own processes, which run for ever.
    fn start(self: Rc<Self>);

    /// The process that a tick of the clock is charged to when it finds this one running, and
    /// whether as system time in any mode.
    fn billed(&self, found: &Rc<Process>) -> Option<(Rc<Process>, bool)> {
        Some((Rc::clone(found), false))
    }

    /// Checks a volume's file system as fsck does. Returns its files that somebody has open and
    /// nothing names.
    ///
    /// # Errors
    ///
    /// Every problem of an unsound file system.
    fn check(&self, volume: u32) -> Result<u32, Vec<String>>;

    /// Remark on runs with several requests in flight.
    fn ring_note(&self) -> &'static str;
}

/// A computer, whatever its kernel, or a rig.
pub(crate) enum Base<'a> {
    Computer(&'a Computer),
    Rig(&'a Rc<Rig>),
}

macro_rules! kernels {
    ({} $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $session:ty);)*) => {
        /// A kernel on its computer, or a rig, which has neither.
        #[derive(Clone)]
        pub enum Kernel {
            $($(#[$doc])* $Kernel(Rc<$running>),)*
            /// None: programs have the drives by themselves.
            Rig(Rc<Rig>),
        }

        impl Kernel {
            /// The computer under the kernel, or the rig.
            #[inline]
            pub(crate) fn base(&self) -> Base<'_> {
                match self {
                    $(Self::$Kernel(kernel) => Base::Computer(kernel),)*
                    Self::Rig(rig) => Base::Rig(rig),
                }
            }

            /// The kernel; none of a rig.
            pub(crate) fn running(&self) -> Option<Rc<dyn RunningKernel>> {
                match self {
                    $(Self::$Kernel(kernel) => Some(Rc::<$running>::clone(kernel)),)*
                    Self::Rig(_) => None,
                }
            }
        }
    };
}
each_kernel! { kernels! {} }

impl Kernel {
    /// What a run with several requests under way has to say of them: that the kernel had
    /// no call for that, and what they keep each other from. Nothing of a rig.
    pub fn ring_note(&self) -> Option<&'static str> {
        self.running().map(|kernel| kernel.ring_note())
    }
}
