// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Ids of markets, which are unordered pairs of tokens.
library MarketIds {
    /// @return market keccak256 of the two addresses, lower one first.
    function idOf(address tokenA, address tokenB) internal pure returns (bytes32 market) {
        // The assembly of `locate`, without its second result.
        assembly ("memory-safe") {
            let swapped := mul(xor(tokenA, tokenB), gt(tokenA, tokenB))
            mstore(0x00, xor(tokenA, swapped))
            mstore(0x20, shl(96, xor(tokenB, swapped)))
            market := keccak256(0x0c, 0x28)
        }
    }

    /// @return market As `idOf`.
    /// @return isToken0 Whether `tokenA` is the lower one.
    function locate(address tokenA, address tokenB) internal pure returns (bytes32 market, bool isToken0) {
        // Same as isToken0 = tokenA < tokenB and keccak256(abi.encodePacked(token0, token1)), where (token0, token1) is (tokenA, tokenB) or the
        // other way round, in scratch space: 40 bytes from offset 12. The addresses differ from each other in the same bits, so an exclusive or
        // of both with these bits swaps them.
        assembly ("memory-safe") {
            isToken0 := lt(tokenA, tokenB)
            let swapped := mul(xor(tokenA, tokenB), iszero(isToken0))
            mstore(0x00, xor(tokenA, swapped))
            mstore(0x20, shl(96, xor(tokenB, swapped)))
            market := keccak256(0x0c, 0x28)
        }
    }
}
