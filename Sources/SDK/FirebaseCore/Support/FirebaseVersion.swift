// The Firebase version: the version of this SDK.

/// The version of this SDK, such as `0.1.0`.
public func FirebaseVersion() -> String {
  "0.1.0"
}
