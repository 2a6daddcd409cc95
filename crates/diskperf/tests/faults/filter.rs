//! Has the kernel ask before each system call of some: of a process, of all its
//! threads, and of all that it starts (seccomp_unotify(2)). The binary is the one
//! that users have; what is under it answers otherwise.

// Installing a filter is a matter of raw system calls.
#![allow(unsafe_code)]

use libc::{c_int, c_long, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// A call that waits for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    id: u64,
    /// The thread that makes it.
    pub(crate) thread: u32,
    /// Its number (`libc::SYS_...`).
    pub(crate) number: c_long,
    pub(crate) arguments: [u64; 6],
}

/// Where calls are asked about.
pub(crate) struct Listener(OwnedFd);

/// What a wait for a call came to.
pub(crate) enum Asked {
    Call(Call),
    /// Nobody is left who could call.
    AllEnded,
    TimedOut,
}

/// Where the listener comes from once the command is started.
pub(crate) struct Promise(UnixDatagram);

/// Calls that are not asked about although others of their number are: those with
/// this value as their argument of this place.
pub(crate) struct Exempt {
    pub(crate) number: c_long,
    pub(crate) place: usize,
    pub(crate) value: u32,
}

/// Has the command ask about the system calls of these numbers. The listener must
/// be served while the command is started: starting it is such a call.
pub(crate) fn ask_about(
    command: &mut Command,
    numbers: &[c_long],
    exempt: &Exempt,
) -> io::Result<Promise> {
    let (here, there) = UnixDatagram::pair()?;
    let program = program(numbers, exempt);
    let install = move || {
        let listener = install(&program)?;
        let sent = send(there.as_raw_fd(), listener);
        // The command has it no longer than until it runs.
        unsafe { libc::close(listener) };
        sent
    };
    // SAFETY: between fork and exec only system calls are made, and no memory is
    // allocated.
    unsafe { command.pre_exec(install) };
    Ok(Promise(here))
}

/// Whether this machine lets a process have such a filter.
pub(crate) fn missing() -> Option<String> {
    if cfg!(target_endian = "big") {
        return Some("the filter reads arguments of little-endian machines".to_owned());
    }
    let mut sizes = [0_u16; 3];
    // SAFETY: the kernel writes three such numbers.
    let known = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            sizes.as_mut_ptr(),
        )
    };
    (known != 0).then(|| format!("no seccomp: {}", io::Error::last_os_error()))
}

/// Asks about these calls, and lets all others pass.
fn program(numbers: &[c_long], exempt: &Exempt) -> Vec<libc::sock_filter> {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let number_at = mem::offset_of!(libc::seccomp_data, nr) as u32;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    // The low half of an argument comes first.
    let argument_at = mem::offset_of!(libc::seccomp_data, args) + 8 * exempt.place;
    let mut program = vec![
        instruction(load, 0, 0, number_at),
        instruction(equal, 0, 3, exempt.number as u32),
        instruction(load, 0, 0, argument_at as u32),
        instruction(equal, 0, 1, exempt.value),
        instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
        instruction(load, 0, 0, number_at),
    ];
    for number in numbers {
        program.push(instruction(equal, 0, 1, *number as u32));
        program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

fn checked(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn install(program: &[libc::sock_filter]) -> io::Result<RawFd> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: both take numbers and a program that lives until they return.
    let listener = unsafe {
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        checked(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        ))?
    };
    Ok(listener as RawFd)
}

/// Room for the header of one message and one descriptor, aligned as both are.
type Ancillary = [u64; 8];

/// A message of one byte, with which a descriptor goes or comes.
fn message(byte: &mut libc::iovec, ancillary: &mut Ancillary) -> libc::msghdr {
    // SAFETY: all zeros are a message without anything.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = unsafe { libc::CMSG_SPACE(mem::size_of::<c_int>() as u32) } as usize;
    message
}

fn send(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    let mut text = 0_u8;
    let mut byte = libc::iovec {
        iov_base: (&raw mut text).cast::<c_void>(),
        iov_len: 1,
    };
    let mut ancillary: Ancillary = [0; 8];
    let message = message(&mut byte, &mut ancillary);
    // SAFETY: the message has room for this one header.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(mem::size_of::<c_int>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<c_int>().write(descriptor);
        checked(libc::sendmsg(socket, &raw const message, 0) as c_long).map(drop)
    }
}

impl Promise {
    /// Waits for the listener, which comes while the command is being started.
    pub(crate) fn listener(self) -> io::Result<Listener> {
        // A command that does not start sends none.
        self.0.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut text = 0_u8;
        let mut byte = libc::iovec {
            iov_base: (&raw mut text).cast::<c_void>(),
            iov_len: 1,
        };
        let mut ancillary: Ancillary = [0; 8];
        let mut message = message(&mut byte, &mut ancillary);
        let flags = libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the kernel fills in what the message has room for; a header
        // that came has a descriptor, which is this process's from then on.
        unsafe {
            checked(libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) as c_long)?;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if header.is_null() {
                return Err(io::Error::other("no descriptor came"));
            }
            let descriptor = libc::CMSG_DATA(header).cast::<c_int>().read();
            Ok(Listener(OwnedFd::from_raw_fd(descriptor)))
        }
    }
}

impl Listener {
    /// Waits for the next call.
    pub(crate) fn next(&self, limit: Duration) -> Asked {
        let mut waited = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the kernel reads and writes one entry.
        let ready = unsafe { libc::poll(&raw mut waited, 1, limit.as_millis() as c_int) };
        if ready <= 0 {
            return Asked::TimedOut;
        }
        if waited.revents & libc::POLLIN == 0 {
            return Asked::AllEnded;
        }
        // SAFETY: the kernel wants zeros, and fills in one notification.
        let (received, asked) = unsafe {
            let mut asked: libc::seccomp_notif = mem::zeroed();
            let received = libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut asked,
            );
            (received, asked)
        };
        // Whoever asked may have been killed meanwhile.
        if received != 0 {
            return Asked::TimedOut;
        }
        Asked::Call(Call {
            id: asked.id,
            thread: asked.pid,
            number: asked.data.nr.into(),
            arguments: asked.data.args,
        })
    }

    /// Has the kernel carry the call out.
    pub(crate) fn let_pass(&self, call: Call) {
        self.answer(call, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Has the call fail, and nothing happen.
    pub(crate) fn fail(&self, call: Call, errno: c_int) {
        self.answer(call, -errno, 0);
    }

    fn answer(&self, call: Call, error: c_int, flags: u32) {
        let answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error,
            flags,
        };
        // SAFETY: the kernel reads one answer. Whoever asked may be gone, and
        // then nobody wants it.
        unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            );
        }
    }
}
