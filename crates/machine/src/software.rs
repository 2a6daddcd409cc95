//! What programs run on: a kernel on its computer, or drives by themselves.

use crate::kernel::computer::Computer;
use crate::kernel::minix::Minix;
use crate::kernel::{On, Unix};
use crate::rig::Rig;
use std::rc::Rc;

/// A kernel on its computer, or a rig, which has neither.
#[derive(Clone)]
pub enum Kernel {
    /// 4.2BSD or the seventh edition.
    Unix(Rc<Unix>),
    /// Minix.
    Minix(Rc<Minix>),
    /// None: programs have the drives by themselves.
    Rig(Rc<Rig>),
}

/// A computer, whatever its kernel, or a rig.
pub(crate) enum Base<'a> {
    Computer(&'a Computer),
    Rig(&'a Rc<Rig>),
}

impl Kernel {
    /// The computer under the kernel, or the rig.
    #[inline]
    pub(crate) fn base(&self) -> Base<'_> {
        match self {
            Self::Unix(unix) => Base::Computer(unix),
            Self::Minix(minix) => Base::Computer(minix),
            Self::Rig(rig) => Base::Rig(rig),
        }
    }

    /// What a run with several requests under way has to say of them: that the kernel had
    /// no call for that, and what they keep each other from. Nothing of a rig.
    pub fn ring_note(&self) -> Option<&'static str> {
        match self {
            Self::Rig(_) => None,
            Self::Unix(unix) => Some(match unix.on() {
                On::Ffs(_) => {
                    "an extension: this kernel had no call for several requests under way; daemons carry them out, those of one file one after the other, as its inode is locked"
                }
                On::V7(_) => {
                    "an extension: the seventh edition had no call for several requests under way; daemons carry them out, those of one file one after the other, as its inode is locked"
                }
            }),
            Self::Minix(_) => Some(
                "an extension: Minix had no call for several requests under way; daemons carry them out, and its file server takes one at a time, whatever the depth",
            ),
        }
    }
}
