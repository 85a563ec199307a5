// Provides the signed-in user as asynchronous sequences.

import Foundation

extension Auth {
  /// The signed-in user, now and after every sign-in and sign-out.
  ///
  /// ```swift
  /// for await user in Auth.auth().authStateChanges { print(user?.uid ?? "signed out") }
  /// ```
  @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
  public var authStateChanges: AuthStateChangesSequence { AuthStateChangesSequence(self) }

  /// The signed-in user, now and after every change of the user or of the ID token.
  @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
  public var idTokenChanges: IDTokenChangesSequence { IDTokenChangesSequence(self) }

  /// A sequence of users. It ends when the iterating task is cancelled.
  @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
  public struct AuthStateChangesSequence: AsyncSequence, Sendable {
    /// The user; nil if no user is signed in.
    public typealias Element = User?
    /// The sequence does not fail.
    public typealias Failure = Never

    private let auth: Auth

    /// Makes the sequence of an instance.
    public init(_ auth: Auth) {
      self.auth = auth
    }

    /// Adds a listener. It is removed when the iterator is released.
    public func makeAsyncIterator() -> Iterator {
      Iterator(userStream(of: auth, receivesTokens: false))
    }

    /// Receives the users for one task.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncStream<User?>.Iterator

      init(_ stream: AsyncStream<User?>) {
        base = stream.makeAsyncIterator()
      }

      /// Waits for the next user; nil when the task is cancelled.
      public mutating func next() async -> User?? {
        await base.next(isolation: #isolation)
      }
    }
  }

  /// A sequence of users. It ends when the iterating task is cancelled.
  @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
  public struct IDTokenChangesSequence: AsyncSequence, Sendable {
    /// The user; nil if no user is signed in.
    public typealias Element = User?
    /// The sequence does not fail.
    public typealias Failure = Never

    private let auth: Auth

    /// Makes the sequence of an instance.
    public init(_ auth: Auth) {
      self.auth = auth
    }

    /// Adds a listener. It is removed when the iterator is released.
    public func makeAsyncIterator() -> Iterator {
      Iterator(userStream(of: auth, receivesTokens: true))
    }

    /// Receives the users for one task.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncStream<User?>.Iterator

      init(_ stream: AsyncStream<User?>) {
        base = stream.makeAsyncIterator()
      }

      /// Waits for the next user; nil when the task is cancelled.
      public mutating func next() async -> User?? {
        await base.next(isolation: #isolation)
      }
    }
  }
}

/// A stream of the users that a listener receives. The listener is removed when the stream ends.
private func userStream(of auth: Auth, receivesTokens: Bool) -> AsyncStream<User?> {
  AsyncStream { continuation in
    let listener: (Auth, User?) -> Void = { continuation.yield($1) }
    let handle = ListenerRegistration(
      auth: auth,
      handle: receivesTokens
        ? auth.addIDTokenDidChangeListener(listener) : auth.addStateDidChangeListener(listener))
    continuation.onTermination = { _ in handle.remove() }
  }
}

/// The registration of the listener of a stream.
// SAFETY: both properties are constants, and the handle is used only as an identity.
private final class ListenerRegistration: @unchecked Sendable {
  private let auth: Auth
  private let handle: any NSObjectProtocol

  init(auth: Auth, handle: any NSObjectProtocol) {
    self.auth = auth
    self.handle = handle
  }

  func remove() {
    auth.removeIDTokenDidChangeListener(handle)
  }
}
