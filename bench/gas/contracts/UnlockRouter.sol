// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

interface IToken {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

struct PoolKey {
    address currency0;
    address currency1;
    uint24 fee;
    int24 tickSpacing;
    address hooks;
}

struct SwapParams {
    bool zeroForOne;
    int256 amountSpecified;
    uint160 sqrtPriceLimitX96;
}

interface IPoolManager {
    function unlock(bytes calldata data) external returns (bytes memory);
    function swap(
        PoolKey calldata key,
        SwapParams calldata params,
        bytes calldata hookData
    ) external returns (int256 delta);
    function sync(address currency) external;
    function settle() external payable returns (uint256 paid);
    function take(address currency, address to, uint256 amount) external;
}

/// @title The least that a router of Uniswap v4 must do: one pool, exact input, a minimum output, paid from the caller's allowance.
contract UnlockRouter {
    IPoolManager private immutable MANAGER;

    uint160 private constant LOWEST_SQRT_PRICE = 4295128740;
    uint160 private constant HIGHEST_SQRT_PRICE = 1461446703485210103287273052203988822378723970341;

    error NotManager();
    error InsufficientOutput(uint256 delivered, uint256 minimum);

    constructor(address manager) {
        MANAGER = IPoolManager(manager);
    }

    function swap(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountIn,
        uint256 minAmountOut
    ) external returns (uint256 amountOut) {
        bytes memory answer = MANAGER.unlock(abi.encode(key, zeroForOne, amountIn, msg.sender));
        amountOut = abi.decode(answer, (uint256));
        if (amountOut < minAmountOut) revert InsufficientOutput(amountOut, minAmountOut);
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        if (msg.sender != address(MANAGER)) revert NotManager();
        (PoolKey memory key, bool zeroForOne, uint256 amountIn, address payer) = abi.decode(
            data,
            (PoolKey, bool, uint256, address)
        );
        uint160 limit = zeroForOne ? LOWEST_SQRT_PRICE : HIGHEST_SQRT_PRICE;
        int256 delta = MANAGER.swap(key, SwapParams(zeroForOne, -int256(amountIn), limit), "");
        // The high half is the change of currency0, the low half that of currency1; what the pool owes is positive.
        uint256 amountOut = uint128(zeroForOne ? int128(delta) : int128(delta >> 128));
        (address paid, address received) = zeroForOne ? (key.currency0, key.currency1) : (key.currency1, key.currency0);
        MANAGER.sync(paid);
        require(IToken(paid).transferFrom(payer, address(MANAGER), amountIn));
        MANAGER.settle();
        MANAGER.take(received, payer, amountOut);
        return abi.encode(amountOut);
    }
}
