// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Markets are unordered pairs of tokens.
library MarketIds {
    /// @return market keccak256 of the two addresses, lower one first.
    function idOf(address tokenA, address tokenB) internal pure returns (bytes32 market) {
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        // Same as keccak256(abi.encodePacked(token0, token1)), in scratch space: 40 bytes from offset 12.
        assembly ("memory-safe") {
            mstore(0, token0)
            mstore(32, shl(96, token1))
            market := keccak256(12, 40)
        }
    }
}
