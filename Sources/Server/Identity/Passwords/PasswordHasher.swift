// Hashes and verifies passwords on dedicated threads. A hash takes up to a second of processor time, which would stall
// the tasks of Swift's cooperative pool and the event loops.
//
// The threads have idle priority, so that sign-ins delay the databases little. On a machine whose processors are always busy
// such a thread almost never runs. Therefore, when no hash has finished for `reliefDelay`, a thread with a share of processor
// time computes the waiting hashes too, and the first result counts. Decision 0030.
//
// Invariant: at most `maximumQueued` hashes wait; a further one fails immediately instead of growing the queue.

import Locking
import OrderedStore

/// Hashes and verifies passwords.
package final class PasswordHasher: Sendable {
  /// Maximum hashes that wait for a thread. At 50 ms each they take about six seconds on two threads.
  private static let maximumQueued = 256

  /// The scheme of new passwords.
  package let scheme: PasswordScheme
  private let threads: ThreadPool
  /// Computes hashes while the idle threads finish none.
  private let relief: ThreadPool
  private let reliefDelay: Duration
  private let queued = Guarded(0)
  /// The number of hashes that the idle threads have finished.
  private let progress = Guarded(0)

  /// Creates a hasher.
  /// - Parameters:
  ///   - scheme: the scheme of new passwords: ``PasswordScheme/emulator`` or ``PasswordScheme/standard``.
  ///   - threads: the number of hashes that run at the same time when processors are idle.
  ///   - reliefDelay: the time without a finished hash after which hashes get a share of processor time.
  package init(_ scheme: PasswordScheme, threads: Int = 2, reliefDelay: Duration = .seconds(2)) {
    self.scheme = scheme
    self.threads = ThreadPool(threads: threads, priority: .idle)
    self.reliefDelay = reliefDelay
    relief = ThreadPool(threads: 1, priority: .background)
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

  /// Whether a password matches a stored one. Without a stored one, and with one that takes less work, it does the work
  /// of the default scheme, so that the time does not show whether an account exists.
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
    let (queued, progress) = (queued, progress)
    let result: Result? = await withCheckedContinuation { continuation in
      let job = HashJob(work) { result in
        queued.withLock { $0 -= 1 }
        continuation.resume(returning: result)
      }
      let isSubmitted = threads.submit {
        job.run()
        progress.withLock { $0 += 1 }
      }
      guard isSubmitted else { return job.finish(nil) }
      Task { [relief, reliefDelay] in
        while !job.isFinished {
          let before = progress.withLock { $0 }
          try? await Task.sleep(for: reliefDelay)
          guard progress.withLock({ $0 }) == before, !job.isFinished else { continue }
          relief.submit { job.run() }
          return
        }
      }
    }
    guard let result else { throw .unavailable("The server is stopping.") }
    return result
  }
}

/// A computation that several threads may run. The first result counts.
private final class HashJob<Result: Sendable>: Sendable {
  private struct State {
    var work: (@Sendable () -> Result)?
    var completion: (@Sendable (Result?) -> Void)?
  }

  private let state: Guarded<State>

  init(_ work: @escaping @Sendable () -> Result, _ completion: @escaping @Sendable (Result?) -> Void) {
    state = Guarded(State(work: work, completion: completion))
  }

  var isFinished: Bool { state.withLock { $0.completion == nil } }

  /// Computes the result unless it is known.
  func run() {
    guard let work = state.withLock({ $0.work }) else { return }
    finish(work())
  }

  /// Completes the job, unless it is complete, and releases the computation with its password.
  func finish(_ result: Result?) {
    let completion = state.withLock { state in
      defer { state = State() }
      return state.completion
    }
    completion?(result)
  }
}
