// A provider of tokens: the part of FirebaseAuth or of App Check that other products reach through an app.
//
// The databases do not import FirebaseAuth. An app without it neither builds it nor links it.

/// Makes tokens of one kind for one app.
package protocol TokenProvider: AnyObject, Sendable {
  /// Gets a token that is valid for the next minutes.
  ///
  /// - Parameters:
  ///   - forcingRefresh: whether to request a new token although the current one has not expired.
  ///   - completion: receives the token, nil when nobody is signed in, or the error. It is called exactly once, on any
  ///     thread.
  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void)
}

/// A product that creates its token provider when another product first needs a token of an app.
///
/// `TokenComponents` finds the conforming classes by name.
package protocol TokenComponent: AnyObject {
  /// Creates the provider of an app and registers it with the app's token source, unless it exists.
  static func start(for app: FirebaseApp)
}
