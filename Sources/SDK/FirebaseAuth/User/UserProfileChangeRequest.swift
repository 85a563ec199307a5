// A profile change request: changes a user's name and picture.

public import Foundation
import FirebaseCore
import Locking

/// Changes the profile of a user. The app sets the properties and then commits.
///
/// On the server, properties that were not set keep their values, and properties that were set to nil are
/// deleted.
open class UserProfileChangeRequest: NSObject, @unchecked Sendable {
  // SAFETY: the changes are behind a lock.
  private struct Changes {
    var displayName: String??
    var photoURL: URL??
    var isCommitted = false
  }

  private let user: User
  private let changes = Guarded(Changes())

  init(_ user: User) {
    self.user = user
    super.init()
  }

  /// The name to display. Setting it after the commit stops the program.
  open var displayName: String? {
    get { changes.withLock { $0.displayName ?? nil } ?? user.displayName }
    set { edit { $0.displayName = .some(newValue) } }
  }

  /// The URL of a picture. Setting it after the commit stops the program.
  open var photoURL: URL? {
    get { changes.withLock { $0.photoURL ?? nil } ?? user.photoURL }
    set { edit { $0.photoURL = .some(newValue) } }
  }

  private func edit(_ body: (inout Changes) -> Void) {
    let isCommitted = changes.withLock { changes in
      if !changes.isCommitted { body(&changes) }
      return changes.isCommitted
    }
    if isCommitted {
      usageException(
        "FIRAuthErrorDomain", "Attempted to change a profile change request after it was committed")
    }
  }

  /// Sends the changes.
  ///
  /// Stops the program if it is called a second time.
  ///
  /// - Throws: the errors of the request, such as `networkError`.
  open func commitChanges() async throws {
    let (committed, changes) = changes.withLock { changes in
      defer { changes.isCommitted = true }
      return (changes.isCommitted, changes)
    }
    if committed { usageException("FIRAuthErrorDomain", "A profile change request was committed twice") }
    guard changes.displayName != nil || changes.photoURL != nil else { return }
    try await user.update { request in
      var deleted: [String] = []
      if let name = changes.displayName {
        if let name { request.displayName = name } else { deleted.append("DISPLAY_NAME") }
      }
      if let url = changes.photoURL {
        if let url { request.photoUrl = url.absoluteString } else { deleted.append("PHOTO_URL") }
      }
      if !deleted.isEmpty { request.deleteAttribute = deleted }
    }
  }

  /// Sends the changes.
  ///
  /// - Parameter completion: receives nil or the error, on the main queue.
  open func commitChanges(completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) { try await self.commitChanges() }
  }
}
