// The order of keys: bytes are compared as unsigned numbers, and a prefix sorts before its extensions. Every
// ordered structure of the store uses these functions, so that memory, disk and merged scans agree.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Compares two byte strings. Returns a negative number, zero or a positive number if `a` is below, equal to
/// or above `b`.
@inline(__always)
package func compareBytes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
  let common = min(a.count, b.count)
  if common > 0, let first = a.baseAddress, let second = b.baseAddress {
    let order = memcmp(first, second, common)
    if order != 0 { return Int(order) }
  }
  return a.count - b.count
}

/// Compares two keys. Returns a negative number, zero or a positive number if `a` is below, equal to or above
/// `b`.
@inline(__always)
package func compareKeys(_ a: Key, _ b: Key) -> Int {
  a.withUnsafeBytes { first in b.withUnsafeBytes { second in compareBytes(first, second) } }
}
