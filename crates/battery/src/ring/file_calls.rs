//! Requests that are calls on files and move no data, made one after the other without a
//! ring: fio's engines of that kind.

use diskperf_system::{Call, Completion, File, Open, Operation, Result};
use diskperf_system::{Submission, System};

/// Calls that stand for requests.
#[derive(Clone, Debug)]
pub(crate) enum FileCalls {
    /// fallocate(2) of the request's range: a read keeps the length of the file, a write
    /// extends it, a discard makes a hole.
    Allocate,
    /// ftruncate(2) to the offset of a write.
    Truncate,
    /// A call on the name of a file that is [not open](File::closed).
    Name {
        /// The call.
        call: NamedCall,
        /// The names, by the files' numbers.
        paths: Vec<String>,
    },
}

/// A call on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedCall {
    /// open(2) with O_CREAT.
    Create,
    /// stat(2).
    Stat,
    /// unlink(2).
    Unlink,
}

impl FileCalls {
    /// Makes the call of a request, and counts it.
    ///
    /// # Errors
    ///
    /// Only where the run has ended: what the call failed with is in its completion.
    pub(crate) async fn carry_out(
        &self,
        system: &mut System,
        request: &Submission,
    ) -> Result<Completion> {
        let begin = system.now();
        let done = self.call(system, request).await;
        let now = system.now();
        let response = now.since(request.intended.unwrap_or(begin));
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
        Ok(Completion {
            slot: request.slot,
            result,
            response,
        })
    }

    /// The file that the call opened, if it did.
    async fn call(&self, system: &mut System, request: &Submission) -> Result<Option<File>> {
        let &Submission {
            operation,
            file,
            offset_bytes,
            bytes,
            ..
        } = request;
        let range = offset_bytes..offset_bytes + u64::from(bytes);
        match (self, operation) {
            (Self::Allocate, Operation::Read) => system.allocate(file, range, false).await?,
            (Self::Allocate, Operation::Write) => system.allocate(file, range, true).await?,
            (Self::Allocate, Operation::Discard) => system.punch_hole(file, range).await?,
            (Self::Truncate, Operation::Write) => system.ftruncate(file, offset_bytes).await?,
            (Self::Name { call, paths }, _) => {
                let path = file.closed_number().and_then(|at| paths.get(at as usize));
                let path = path.expect("a file of the program");
                return call.make(system, path).await;
            }
            (Self::Allocate | Self::Truncate, _) => {
                unreachable!("refused before anything runs: {operation:?}")
            }
        }
        Ok(None)
    }

    /// The system call, for an error's words.
    pub(crate) fn name(&self) -> Call {
        match self {
            Self::Allocate => Call::Fallocate,
            Self::Truncate => Call::Ftruncate,
            Self::Name { call, .. } => match call {
                NamedCall::Create => Call::Open,
                NamedCall::Stat => Call::Stat,
                NamedCall::Unlink => Call::Unlink,
            },
        }
    }
}

impl NamedCall {
    async fn make(self, system: &mut System, path: &str) -> Result<Option<File>> {
        match self {
            Self::Create => system.open(path, Open::READ_WRITE.create()).await.map(Some),
            Self::Stat => system.stat(path).await.map(|_| None),
            Self::Unlink => system.unlink(path).await.map(|()| None),
        }
    }
}

/// The files of names, which are not open.
pub(crate) fn closed_files(count: usize) -> impl Iterator<Item = File> {
    (0..count as u32).map(File::closed)
}
