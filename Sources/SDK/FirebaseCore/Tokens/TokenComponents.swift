// Starts the products that provide tokens, if the program links them.
//
// Google's products register themselves when the program is loaded. Swift has no such hook, so this type looks the
// component's class up in the runtime by name. A program that links FirebaseAuth and never calls `Auth.auth()` still
// sends the tokens of the user who was signed in before.

import Foundation

/// The products that provide tokens, by the names of their component classes.
enum TokenComponents {
  /// The component of FirebaseAuth.
  static let auth = "FirebaseAuth.AuthComponent"

  /// Starts a component for an app; does nothing when the program does not link the product.
  static func start(_ name: String, for app: FirebaseApp) {
    (NSClassFromString(name) as? any TokenComponent.Type)?.start(for: app)
  }
}
