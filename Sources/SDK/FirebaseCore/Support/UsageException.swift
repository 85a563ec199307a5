// The one place where the SDK stops a program. Google's SDK raises an Objective-C exception for
// programming errors (no `configure`, an illegal path, a second ordering on a query …); those
// methods do not throw, so source compatibility leaves no other answer than to stop with a message
// that names the cause. Invariant: nothing that the network, the disk or another client did ever
// ends here.

/// Stops the program because the app used the SDK in a way that the SDK documents as an error.
///
/// - Parameters:
///   - name: the name under which Apple's SDK raises the same error, such as `FIRAppNotConfigured`.
///   - reason: what was wrong and what to do instead.
package func usageException(_ name: String, _ reason: String) -> Never {
  fatalError("\(name): \(reason)")
}
