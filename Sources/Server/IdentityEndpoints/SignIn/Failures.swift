// Passes an error out of a transaction that commits, such as the error for a wrong code whose attempt must be counted.

import Identity
import Locking

/// The first error that was reported.
final class Failures: Sendable {
  private let error = Guarded<IdentityError?>(nil)

  /// Reports an error. Later errors have no effect.
  func set(_ error: IdentityError) { self.error.withLock { $0 = $0 ?? error } }

  /// The reported error; nil for none.
  var first: IdentityError? { error.withLock { $0 } }
}
