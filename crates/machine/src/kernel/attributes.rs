//! Changing an inode's owner, mode or times.
//!
//! On these computers everybody is the super-user, and nothing asks for a mode
//! or a time: that the inode has changed is all that there is to know of it.

use super::files::Session;
use super::inode_io::When;
use super::names::Found;
use super::process::Process;
use super::{On, OnFfs, Vnode};
use crate::errno::{Errno, Result};
use std::rc::Rc;

impl Session {
    /// fchown(2) and fchmod(2).
    pub async fn change_open_attributes(&mut self, number: usize) -> Result<()> {
        self.enter().await;
        let node = self.node_of(number);
        let result = match (self.kernel.on(), node) {
            // It has no such calls.
            (On::V7(_), _) => Err(Errno::Invalid),
            (On::Ffs(ffs), Ok(node)) => {
                ffs.change_attributes(&self.process, node).await;
                Ok(())
            }
            (On::Ffs(_), Err(errno)) => Err(errno),
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
        if kernel.device(path)?.is_some() {
            return Err(Errno::Invalid);
        }
        let ffs = match kernel.on() {
            On::V7(v7) => return v7.change_attributes(process, path).await,
            On::Ffs(ffs) => ffs,
        };
        let Found::Node(node) = ffs.find(process, path).await? else {
            return Err(Errno::Invalid);
        };
        ffs.take_inode(process, node).await;
        ffs.change_attributes(process, node).await;
        ffs.drop_inode(process, node).await;
        Ok(())
    }
}

impl OnFfs<'_> {
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
