// An error that a transaction reports although it commits, such as a wrong code whose attempt must be counted.

import Identity
import Locking

/// The first error that was reported.
final class Failures: Sendable {
  private let error = Guarded<IdentityError?>(nil)

  /// Reports an error. Later ones have no effect.
  func set(_ error: IdentityError) { self.error.withLock { $0 = $0 ?? error } }

  /// The reported error; nil for none.
  var first: IdentityError? { error.withLock { $0 } }
}
