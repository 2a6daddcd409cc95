//! Software that serves programs: a kernel on its computer, or a rig (drives without a computer).

use crate::kernel::computer::Computer;
use crate::kernel::list::each_kernel;
use crate::kernel::process::Process;
use crate::rig::Rig;
use std::rc::Rc;

pub(crate) trait RunningKernel {
    /// Starts the interrupt handlers of the kernel and its own processes, which run forever.
    fn start_daemons(self: Rc<Self>);

    /// Returns the process to which a clock tick is charged while `found` runs, and whether the
    /// tick counts as system time in any mode. None if the tick is charged to no process.
    fn process_to_charge(&self, found: &Rc<Process>) -> Option<(Rc<Process>, bool)> {
        Some((Rc::clone(found), false))
    }

    /// Checks the file system of a volume as fsck does. Returns the number of files that are open
    /// but have no name.
    ///
    /// # Errors
    ///
    /// Every problem of an unsound file system.
    fn check_file_system(&self, volume: u32) -> Result<u32, Vec<String>>;

    /// Returns a remark about runs with several requests in flight.
    fn ring_emulation_note(&self) -> &'static str;
}

/// Reference to a computer with any kernel, or to a rig (drives without a computer).
pub(crate) enum KernelBase<'a> {
    Computer(&'a Computer),
    Rig(&'a Rc<Rig>),
}

macro_rules! kernels {
    ({} $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $session:ty);)*) => {
        /// Kernel on its computer, or a rig: drives without a kernel and a computer.
        #[derive(Clone)]
        pub enum Kernel {
            $($(#[$doc])* $Kernel(Rc<$running>),)*
            /// Rig: programs use the drives without a kernel.
            Rig(Rc<Rig>),
        }

        impl Kernel {
            /// Returns the computer of the kernel, or the rig if there is no computer.
            #[inline]
            pub(crate) fn kernel_base(&self) -> KernelBase<'_> {
                match self {
                    $(Self::$Kernel(kernel) => KernelBase::Computer(kernel),)*
                    Self::Rig(rig) => KernelBase::Rig(rig),
                }
            }

            /// Returns the running kernel. None for a rig (drives without a computer).
            pub(crate) fn running_kernel(&self) -> Option<Rc<dyn RunningKernel>> {
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
    /// Returns a remark about runs with several requests in flight: the kernel had no call for
    /// that, and how the requests block each other. None for a rig (drives without a computer).
    pub fn ring_emulation_note(&self) -> Option<&'static str> {
        self.running_kernel()
            .map(|kernel| kernel.ring_emulation_note())
    }
}
