// Passes an error out of a transaction that commits, such as the error for a wrong code whose attempt must be counted.

import Identity
import Locking

/// The first error that was reported.
final class ReportedError: Sendable {
  private let reported = Guarded<IdentityError?>(nil)

  /// Reports an error. Later errors have no effect.
  func report(_ error: IdentityError) { reported.withLock { $0 = $0 ?? error } }

  /// The reported error; nil for none.
  var error: IdentityError? { reported.withLock { $0 } }
}
