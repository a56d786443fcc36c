// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title The least that any venue with a vault does: it takes one token and gives another, without computing a price and without a proxy.
contract Floor {
    function swap(address tokenIn, address tokenOut, uint256 amountIn, uint256 amountOut) external {
        require(IToken(tokenIn).transferFrom(msg.sender, address(this), amountIn));
        require(IToken(tokenOut).transfer(msg.sender, amountOut));
    }
}
