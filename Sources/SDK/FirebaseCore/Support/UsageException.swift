// Stops the program after a usage error. Google's SDK raises an Objective-C exception for programming errors, such as a
// missing `configure`, an invalid path or a second ordering of a query. Those methods do not throw, so this SDK stops
// with a message that names the cause.
//
// Invariant: no input from the network, the disk or another client stops the program.

/// Stops the program because the app used the SDK in a way that the SDK documents as an error.
///
/// - Parameters:
///   - name: the name under which Apple's SDK raises the same error, such as `FIRAppNotConfigured`.
///   - reason: the error, and how to avoid it.
package func usageException(_ name: String, _ reason: String) -> Never {
  fatalError("\(name): \(reason)")
}
