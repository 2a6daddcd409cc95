//! Calls that change owner, mode and times of files. The model keeps none of the values, but
//! modifies the inode that contains them.

use super::Model;
use crate::{Call, Errno, Error, File, Result};

impl Model {
    pub(crate) async fn fchown(&mut self, file: File) -> Result<()> {
        self.change_open(Call::Fchown, file).await
    }

    pub(crate) async fn fchmod(&mut self, file: File, mode: u32) -> Result<()> {
        let _ = mode;
        self.change_open(Call::Fchmod, file).await
    }

    pub(crate) async fn chown(&mut self, path: &str) -> Result<()> {
        self.change_named(Call::Chown, path).await
    }

    pub(crate) async fn chmod(&mut self, path: &str, mode: u32) -> Result<()> {
        let _ = mode;
        self.change_named(Call::Chmod, path).await
    }

    pub(crate) async fn utimes(&mut self, path: &str) -> Result<()> {
        self.change_named(Call::Utimes, path).await
    }

    async fn change_open(&mut self, call: Call, file: File) -> Result<()> {
        self.check()?;
        // Only what is in a file system has these.
        if let Some(Some(open)) = self.files.get(file.0)
            && open.drive.is_none()
        {
            return Err(self.failed(call, file, Errno::Access));
        }
        let changed = self.session.change_open_attributes(file.0).await;
        changed.map_err(|errno| self.failed(call, file, errno))
    }

    async fn change_named(&mut self, call: Call, path: &str) -> Result<()> {
        self.check_name(call, path)?;
        let changed = self.session.change_attributes(path).await;
        changed.map_err(|errno| Error::failed(call, path, errno))
    }
}
