// A token provider: the interface of FirebaseAuth or App Check for other products.
//
// The databases do not import FirebaseAuth. An app that does not use FirebaseAuth neither builds nor links
// it.

/// Provides tokens of one type for one app.
package protocol TokenProvider: AnyObject, Sendable {
  /// Gets a token that stays valid for some minutes.
  ///
  /// - Parameters:
  ///   - forcingRefresh: whether to request a new token even if the current one has not expired.
  ///   - completion: receives the token, nil if no user is signed in, or the error. It is called exactly
  ///     once, on any thread.
  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void)
}

/// A product that makes its token provider when another product first needs a token of an app.
///
/// `TokenComponents` finds the conforming classes by name.
package protocol TokenComponent: AnyObject {
  /// Makes the provider of an app and registers it with the app's token source, unless it already exists.
  static func start(for app: FirebaseApp)
}
