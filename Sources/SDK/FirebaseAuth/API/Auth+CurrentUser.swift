// Restores, stores and replaces the current user, and signs the user out.

import FirebaseCore
import Foundation
import Locking

extension Auth {
  /// Restores the stored user, and registers with the app's token source.
  func restoreUser() {
    var user: User?
    do {
      if let record = try store.load() { user = User(record: record, auth: self) }
    } catch {
      FirebaseLogger.log(.error, service: "Auth", "No user is signed in: \(error)")
    }
    let current = user?.tokenState ?? .signedOut
    state.withLock { state in
      state.user = user
      state.notified = current
    }
    tokenSource.register(self, state: current)
  }

  /// Makes a user the current one, stores it, and notifies listeners.
  ///
  /// - Throws: `keychainError` if the user cannot be stored; the current user is then unchanged.
  func setCurrentUser(_ user: User?) throws {
    try changeLock.withLock {
      try save(user?.record)
      user?.attach(to: self)
      state.withLock { $0.user = user }
      notifyOfChange()
    }
  }

  /// Stores a changed user, and notifies listeners if its token changed. Does nothing if the object is not
  /// the current user.
  ///
  /// - Throws: `keychainError` if the user cannot be stored.
  func saveChanges(of user: User) throws {
    try changeLock.withLock {
      guard currentUser === user else { return }
      try save(user.record)
      notifyOfChange()
    }
  }

  /// Signs out a user whose tokens the server no longer accepts.
  func signOut(user: User) {
    changeLock.withLock {
      guard currentUser?.uid == user.uid else { return }
      FirebaseLogger.log(
        .notice, service: "Auth", "The user's token is not valid any more; the user is signed out")
      do {
        try save(nil)
      } catch {
        FirebaseLogger.log(.error, service: "Auth", "The stored user could not be deleted: \(error)")
      }
      state.withLock { $0.user = nil }
      notifyOfChange()
    }
  }

  private func save(_ record: UserRecord?) throws {
    do {
      try store.save(record)
    } catch {
      throw AuthErrorCode.keychainError.error(underlying: error)
    }
  }

  /// Signs the current user out and deletes the stored user. Does nothing if no user is signed in.
  ///
  /// - Throws: `keychainError` if the stored user cannot be deleted; in this case the user stays signed in.
  public func signOut() throws {
    try changeLock.withLock {
      guard currentUser != nil else { return }
      try setCurrentUser(nil)
    }
  }

  /// Makes an existing `User` object the current user, for instance the user of another `FirebaseApp` of the same project.
  ///
  /// - Parameters:
  ///   - user: the user.
  ///   - completion: receives nil, or `nullUser`, `tenantIDMismatch`, `keychainError`, or the error of a reload.
  public func updateCurrentUser(_ user: User?, completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) {
      guard let user else { throw AuthErrorCode.nullUser.error() }
      try await self.updateCurrentUser(user)
    }
  }

  /// Makes an existing `User` object the current user, for instance the user of another `FirebaseApp` of the same project.
  ///
  /// If the object belongs to another app, it stays with that app. `currentUser` is then a new object with
  /// the same data.
  ///
  /// - Throws: `tenantIDMismatch`, `keychainError`. If the other app has another API key, the user is
  ///   reloaded to check that the account belongs to this project. An error of the reload is thrown.
  public func updateCurrentUser(_ user: User) async throws {
    if user.tenantID != tenantID { throw AuthErrorCode.tenantIDMismatch.error() }
    guard let other = user.auth, other !== self else { return try setCurrentUser(user) }
    let copy = User(record: user.record, auth: self)
    if other.backend.apiKey != backend.apiKey { try await copy.reload() }
    try setCurrentUser(copy)
  }
}
