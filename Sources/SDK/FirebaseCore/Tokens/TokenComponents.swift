// The token components: starts the products that provide tokens, if the program links them.
//
// Google's products register themselves when the program is loaded. Swift has no such hook, so this type
// finds the component's class in the runtime by its name. Therefore a program that links FirebaseAuth sends
// the tokens of the user who was signed in before, even if it never calls `Auth.auth()`.

import Foundation

/// The products that provide tokens, with the names of their component classes.
enum TokenComponents {
  /// The component of FirebaseAuth.
  static let auth = "FirebaseAuth.AuthComponent"

  /// Starts a component for an app. Does nothing if the program does not link the product.
  static func start(_ name: String, for app: FirebaseApp) {
    (NSClassFromString(name) as? any TokenComponent.Type)?.start(for: app)
  }
}
