//! Changing an inode's owner, mode or times.
//!
//! On these computers everybody is the super-user, and nothing asks for a mode
//! or a time: that the inode has changed is all that there is to know of it.

use super::errno::{Errno, Result};
use super::files::Session;
use super::inode_io::When;
use super::names::Found;
use super::process::Process;
use super::{Kernel, Vnode};
use std::rc::Rc;

impl Session {
    /// fchown(2) and fchmod(2).
    pub async fn change_open_attributes(&mut self, number: usize) -> Result<()> {
        self.enter().await;
        let result = match self.node_of(number) {
            // The seventh edition has no such calls.
            _ if self.kernel.v7.is_some() => Err(Errno::Invalid),
            Ok(node) => {
                self.kernel.change_attributes(&self.process, node).await;
                Ok(())
            }
            Err(errno) => Err(errno),
        };
        self.leave(result).await
    }

    /// chown(2), chmod(2) and utimes(2).
    pub async fn change_attributes(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.change_named_attributes(path).await;
        self.leave(result).await
    }

    async fn change_named_attributes(&self, path: &str) -> Result<()> {
        let (kernel, process) = (&self.kernel, &self.process);
        if kernel.v7.is_some() {
            return match kernel.device(path)? {
                Some(_) => Err(Errno::Invalid),
                None => kernel.v7_change_attributes(process, path).await,
            };
        }
        let Found::Node(node) = kernel.find(process, path).await? else {
            return Err(Errno::Invalid);
        };
        kernel.take_inode(process, node).await;
        kernel.change_attributes(process, node).await;
        kernel.drop_inode(process, node).await;
        Ok(())
    }
}

impl Kernel {
    /// What is not written now is when the inode is put away, or by update.
    async fn change_attributes(&self, process: &Rc<Process>, node: Vnode) {
        self.lock(process, node).await;
        self.in_core(node, |core| core.modified = true);
        if self.costs.attributes_synchronous {
            self.write_inode_block(process, node, When::Now).await;
        }
        self.unlock(node);
    }
}
