//! Calls that change owner, mode and times of files. The model keeps none of the values, but
//! modifies the inode that contains them.

use super::ModelWorker;
use crate::{CallKind, Errno, Error, File, Result};

impl ModelWorker {
    pub(crate) async fn fchown(&mut self, file: File) -> Result<()> {
        self.change_open_attributes(CallKind::Fchown, file).await
    }

    pub(crate) async fn fchmod(&mut self, file: File, mode: u32) -> Result<()> {
        let _ = mode;
        self.change_open_attributes(CallKind::Fchmod, file).await
    }

    pub(crate) async fn chown(&mut self, path: &str) -> Result<()> {
        self.change_path_attributes(CallKind::Chown, path).await
    }

    pub(crate) async fn chmod(&mut self, path: &str, mode: u32) -> Result<()> {
        let _ = mode;
        self.change_path_attributes(CallKind::Chmod, path).await
    }

    pub(crate) async fn utimes(&mut self, path: &str) -> Result<()> {
        self.change_path_attributes(CallKind::Utimes, path).await
    }

    async fn change_open_attributes(&mut self, call: CallKind, file: File) -> Result<()> {
        self.check_stop_requested()?;
        // Only what is in a file system has these.
        if let Some(Some(open)) = self.open_files.get(file.0)
            && open.drive_number.is_none()
        {
            return Err(self.call_failed(call, file, Errno::Access));
        }
        let changed = self.session.change_open_attributes(file.0).await;
        changed.map_err(|errno| self.call_failed(call, file, errno))
    }

    async fn change_path_attributes(&mut self, call: CallKind, path: &str) -> Result<()> {
        self.check_name(call, path)?;
        let changed = self.session.change_attributes(path).await;
        changed.map_err(|errno| Error::call_failed(call, path, errno))
    }
}
