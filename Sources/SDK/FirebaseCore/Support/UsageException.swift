// The usage exception: stops the program because of a programming error, such as a missing `configure`, an
// invalid path or a second ordering of a query. Google's SDK raises an Objective-C exception for such errors.
// The methods do not throw, so this SDK stops the program with a message that contains the cause.
//
// Invariant: no input from the network, the disk or another client stops the program.

/// Stops the program because the app used the SDK in a way that the SDK documents as an error.
///
/// - Parameters:
///   - name: the name of the exception that Google's SDK raises for the same error, such as
///     `FIRAppNotConfigured`.
///   - reason: the error, and how the app can avoid it.
package func usageException(_ name: String, _ reason: String) -> Never {
  fatalError("\(name): \(reason)")
}
