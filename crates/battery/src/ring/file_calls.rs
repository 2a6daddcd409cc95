//! Requests that are calls on files and move no data. They run one after the other without a ring,
//! for the fio engines of this kind.

use diskperf_system::{CallKind, File, IoCompletion, IoOperation, OpenOptions, Result};
use diskperf_system::{Submission, System};

/// Calls on files that stand for requests.
#[derive(Clone, Debug)]
pub(crate) enum FileCalls {
    /// fallocate(2) on the request's range. A read keeps the length of the file, a write extends
    /// it, and a discard punches a hole.
    Allocate,
    /// ftruncate(2) to the offset of a write.
    Truncate,
    /// Call on the name of a file that is [not open](File::new_closed).
    DirectoryEntryCalls {
        /// System call to make on the file's name.
        call: NamedCall,
        /// Paths of the files, by file number.
        paths: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedCall {
    /// open(2) with O_CREAT, which creates the file.
    Create,
    /// stat(2), which reads the attributes of the file.
    Stat,
    /// unlink(2), which removes the file.
    Unlink,
}

impl FileCalls {
    /// Makes the call that stands for a request, and counts it.
    ///
    /// # Errors
    ///
    /// Fails only if the run has ended. The error of the call itself is part of its completion.
    pub(crate) async fn make_calls(
        &self,
        system: &mut System,
        request: &Submission,
    ) -> Result<IoCompletion> {
        let begin = system.now();
        let done = self.make_call(system, request).await;
        let now = system.now();
        let response = now.since(request.intended_start.unwrap_or(begin));
        let result = match done {
            Ok(created) => {
                let bytes = request.bytes.into();
                system.count_request(request.operation, bytes, response);
                // fio closes a file when it needs no more of it: that is not timed.
                if let Some(created) = created {
                    system.close(created).await?;
                }
                Ok(request.bytes)
            }
            Err(error) => Err(error.errno().ok_or(error)?),
        };
        Ok(IoCompletion {
            slot: request.slot,
            byte_count_or_errno: result,
            response_time: response,
        })
    }

    /// Makes the call and returns the file that it opened, if any.
    async fn make_call(&self, system: &mut System, request: &Submission) -> Result<Option<File>> {
        let &Submission {
            operation,
            file,
            offset_bytes,
            bytes,
            ..
        } = request;
        let range = offset_bytes..offset_bytes + u64::from(bytes);
        match (self, operation) {
            (Self::Allocate, IoOperation::Read) => system.allocate(file, range, false).await?,
            (Self::Allocate, IoOperation::Write) => system.allocate(file, range, true).await?,
            (Self::Allocate, IoOperation::DiscardRange) => system.punch_hole(file, range).await?,
            (Self::Truncate, IoOperation::Write) => system.ftruncate(file, offset_bytes).await?,
            (Self::DirectoryEntryCalls { call, paths }, _) => {
                let path = file.closed_number().and_then(|at| paths.get(at as usize));
                let path = path.expect("a file of the program");
                return call.make_call(system, path).await;
            }
            (Self::Allocate | Self::Truncate, _) => {
                unreachable!("refused before anything runs: {operation:?}")
            }
        }
        Ok(None)
    }

    /// Returns the system call, for error messages.
    pub(crate) fn call_kind(&self) -> CallKind {
        match self {
            Self::Allocate => CallKind::Fallocate,
            Self::Truncate => CallKind::Ftruncate,
            Self::DirectoryEntryCalls { call, .. } => match call {
                NamedCall::Create => CallKind::Open,
                NamedCall::Stat => CallKind::Stat,
                NamedCall::Unlink => CallKind::Unlink,
            },
        }
    }
}

impl NamedCall {
    async fn make_call(self, system: &mut System, path: &str) -> Result<Option<File>> {
        match self {
            Self::Create => system
                .open(path, OpenOptions::READ_WRITE.with_create())
                .await
                .map(Some),
            Self::Stat => system.stat(path).await.map(|_| None),
            Self::Unlink => system.unlink(path).await.map(|()| None),
        }
    }
}

/// Returns placeholders for files that are not open, for calls on their names.
pub(crate) fn closed_files(count: usize) -> impl Iterator<Item = File> {
    (0..count as u32).map(File::new_closed)
}
