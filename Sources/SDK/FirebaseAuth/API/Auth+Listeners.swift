// Listeners of the authentication state and of ID tokens.
//
// Invariant: listeners are called on the main queue, in the order in which they were added. Each is called
// once after it was added, and then after every change. A removed listener is not called.

import FirebaseCore
public import Foundation
import Locking

/// Identifies a listener of the authentication state.
public typealias AuthStateDidChangeListenerHandle = any NSObjectProtocol
/// Identifies a listener of ID tokens.
public typealias IDTokenDidChangeListenerHandle = any NSObjectProtocol

extension NSNotification.Name {
  /// Posted on the main queue after the signed-in user or its token changed; the object is the `Auth`.
  public static let AuthStateDidChange = NSNotification.Name("FIRAuthStateDidChangeNotification")
}

/// A registered listener.
// SAFETY: `lastUserID` is used only on the main queue; the other properties are constants.
final class ListenerHandle: NSObject, @unchecked Sendable {
  /// Whether the listener receives changes of the token as well as changes of the user.
  let receivesTokens: Bool
  private let listener: MainQueueHandler<(Auth, User?)>
  private var lastUserID: String??

  init(receivesTokens: Bool, _ listener: @escaping (Auth, User?) -> Void) {
    self.receivesTokens = receivesTokens
    self.listener = MainQueueHandler { listener($0.0, $0.1) }
    super.init()
  }

  /// Calls the listener on the main queue, unless the listener has already received this user.
  func deliver(_ user: User?, of auth: Auth) {
    let userID = user?.uid
    if !receivesTokens, let lastUserID, lastUserID == userID { return }
    lastUserID = .some(userID)
    listener((auth, user))
  }
}

extension Auth {
  /// The name of the notification; the same as `NSNotification.Name.AuthStateDidChange`.
  public static let authStateDidChangeNotification = NSNotification.Name.AuthStateDidChange

  /// Adds a listener. It is called soon after with the current user. After that it is called whenever another
  /// user signs in or the user signs out.
  ///
  /// - Parameter listener: receives this instance and the user, on the main queue.
  /// - Returns: the handle for `removeStateDidChangeListener(_:)`.
  public func addStateDidChangeListener(
    _ listener: @escaping (Auth, User?) -> Void
  ) -> any NSObjectProtocol {
    add(ListenerHandle(receivesTokens: false, listener))
  }

  /// Removes a listener. It is not called afterwards.
  public func removeStateDidChangeListener(_ listenerHandle: any NSObjectProtocol) {
    remove(listenerHandle)
  }

  /// Adds a listener. It is called soon after with the current user. After that it is called whenever the
  /// user or the user's ID token changes.
  ///
  /// - Parameter listener: receives this instance and the user, on the main queue.
  /// - Returns: the handle for `removeIDTokenDidChangeListener(_:)`.
  public func addIDTokenDidChangeListener(
    _ listener: @escaping (Auth, User?) -> Void
  ) -> any NSObjectProtocol {
    add(ListenerHandle(receivesTokens: true, listener))
  }

  /// Removes a listener. It is not called afterwards.
  public func removeIDTokenDidChangeListener(_ listenerHandle: any NSObjectProtocol) {
    remove(listenerHandle)
  }

  private func add(_ handle: ListenerHandle) -> ListenerHandle {
    state.withLock { $0.listeners.append(handle) }
    DispatchQueue.main.async { [weak self] in self?.deliver(to: [handle]) }
    return handle
  }

  private func remove(_ handle: any NSObjectProtocol) {
    // The listener is released outside the lock, because releasing its captures may run other code.
    _ = state.withLock { state in
      state.listeners.firstIndex { $0 === handle }.map { state.listeners.remove(at: $0) }
    }
  }

  /// Notifies listeners and the other products if the user or the token has changed. The caller must hold the
  /// lock `changeLock`.
  func notifyOfChange() {
    let (new, old) = state.withLock { state in
      let new = state.user?.tokenState ?? .signedOut
      defer { state.notified = new }
      return (new, state.notified)
    }
    guard new != old else { return }
    tokenSource.publish(new)
    scheduleAutomaticRefresh(after: 60)
    DispatchQueue.main.async { [weak self] in
      guard let self else { return }
      NotificationCenter.default.post(name: .AuthStateDidChange, object: self)
      self.deliver(to: self.state.withLock { $0.listeners })
    }
  }

  /// Delivers the current user to listeners that are still registered. Runs on the main queue.
  private func deliver(to handles: [ListenerHandle]) {
    for handle in handles {
      let (isRegistered, user) = state.withLock { state in
        (state.listeners.contains { $0 === handle }, state.user)
      }
      if isRegistered { handle.deliver(user, of: self) }
    }
  }
}
