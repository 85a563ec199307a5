// Hashes and verifies passwords on dedicated threads. A hash takes up to a second of processor time, which would stall
// the tasks of Swift's cooperative pool and the event loops. The threads leave a processor free and have a low
// priority, so that sign-ins delay the databases little: see docs/decisions/0040-threads-of-hashes.md. A separate
// thread of normal priority resumes the callers. To resume a task, Swift's pool may start a thread, and on Linux a new
// thread inherits the priority of the thread that starts it. If a hashing thread resumed the callers, commits could run
// at its low priority.
//
// Invariant: at most `maximumQueued` hashes wait or run; a further one fails immediately instead of growing the queue.

import Foundation
import Locking
import OrderedStore

/// Hashes and verifies passwords.
package final class PasswordHasher: Sendable {
  /// Maximum hashes that wait for a thread or run. At 25 ms each they take about six seconds on one thread.
  private static let maximumQueued = 256

  /// The scheme of new passwords.
  package let scheme: PasswordScheme
  private let threads: ThreadPool
  /// A thread of normal priority that resumes the callers.
  private let resumption = ThreadPool(threads: 1)
  /// The number of hashes that wait or run.
  private let queued = Guarded(0)

  /// Creates a hasher.
  /// - Parameters:
  ///   - scheme: the scheme of new passwords: ``PasswordScheme/emulator`` or ``PasswordScheme/standard``.
  ///   - threads: the number of hashes that run at the same time.
  package init(_ scheme: PasswordScheme, threads: Int = PasswordHasher.threadCount()) {
    self.scheme = scheme
    self.threads = ThreadPool(threads: threads, isBackground: true)
  }

  /// The number of hashing threads on a machine: at most two. If the machine has two processors or more, one remains
  /// for the databases.
  package static func threadCount(
    processors: Int = ProcessInfo.processInfo.activeProcessorCount
  ) -> Int {
    min(2, max(1, processors - 1))
  }

  /// Hashes a new password.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER` if too many hashes wait.
  package func hash(_ password: String) async throws(IdentityError) -> StoredPassword {
    if case .emulator = scheme { return .emulator(password) }
    let scheme = scheme
    let stored = try await run { scheme.hash(password) }
    guard let stored else { preconditionFailure("invariant: the default scheme can hash every password") }
    return stored
  }

  /// Whether a password matches a stored one. If the stored password is missing, or if its verification takes less work
  /// than the default scheme, the hasher adds the missing work. So the time does not show whether an account exists.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER` if too many hashes wait.
  package func verify(_ password: String, _ stored: StoredPassword?) async throws(IdentityError) -> Bool {
    guard let stored else {
      if case .emulator = scheme { return false }
      _ = try await hash(password)
      return false
    }
    if case .emulator = stored.scheme {
      // In production this scheme is never accepted: its text contains the password.
      guard case .emulator = scheme else { return false }
      return stored.scheme.matches(password, hash: stored.hash, salt: stored.salt)
    }
    let scheme = scheme
    return try await run {
      scheme.addWork(to: stored.scheme.verificationWork(password, hash: stored.hash, salt: stored.salt))
      return stored.scheme.matches(password, hash: stored.hash, salt: stored.salt)
    }
  }

  private func run<Result: Sendable>(
    _ work: @escaping @Sendable () -> Result
  ) async throws(IdentityError) -> Result {
    let isAdmitted = queued.withLock { queued in
      guard queued < Self.maximumQueued else { return false }
      queued += 1
      return true
    }
    guard isAdmitted else {
      throw .rejected("TOO_MANY_ATTEMPTS_TRY_LATER", "Too many passwords are being verified.")
    }
    let (queued, resumption) = (queued, resumption)
    let result: Result? = await withCheckedContinuation { continuation in
      let isSubmitted = threads.submit {
        let result = work()
        queued.withLock { queued in
          precondition(queued > 0, "invariant: a queued hash ends once")
          queued -= 1
        }
        resumption.submit { continuation.resume(returning: result) }
      }
      if !isSubmitted { continuation.resume(returning: nil) }
    }
    guard let result else { throw .unavailable("The server is stopping.") }
    return result
  }
}
